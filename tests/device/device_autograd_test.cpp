// Operations that autograd refuses because a tensor is on another device.
#include "core/autograd/function.h"
#include "core/autograd/hooks/saved_hooks.h"
#include "core/autograd/storage_changes.h"
#include "tests/autograd/support.h"
#include "tests/device/async_device.h"
#include "tests/device/async_kernels.h"

namespace tensord::autograd::device_autograd_test {
namespace {

using late::kFirst;

[[maybe_unused]] const bool is_installed = (late::install(), late::install_kernels(), true);

Tensor there(const Numbers& values) { return constant(values).to(kFirst); }
Tensor leaf_there(const Numbers& values) {
  const Tensor out = there(values);
  set_requires_grad(out);
  return out;
}

TEST(DeviceAutograd, GradientsThatAreGivenOrSet) {
  const Tensor x = leaf_there({1, 2});
  backward(mul(x, x), there({1, 10}));
  EXPECT_EQ(numbers(grad(x).to(Device{})), (Numbers{2, 40}));
  EXPECT_THAT(error_of([&] {
                backward(mul(x, x), constant({1, 10}));
              }),
              HasSubstr("invalid gradient at index 0 - expected device privateuseone:0 but got cpu"));
  EXPECT_EQ(error_of([&] { set_grad(x, constant({1, 2})); }), "assigned grad has data located on a different device");
  EXPECT_EQ(error_of([&] { set_grad(x, there({1, 2})); }), "no error");
}

struct ToHost : Function<ToHost> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return scale(x, 1); }
  static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor> grads) { return {grads[0].to(Device{})}; }
};

TEST(DeviceAutograd, GradientsOfFunctions) {
  EXPECT_THAT(error_of([] {
                backward(sum(ToHost::apply(leaf_there({1, 2}))));
              }),
              HasSubstr("returned an invalid gradient at index 0 - expected device"));
}

TEST(DeviceAutograd, WhatSavedTensorHooksGive) {
  const auto error_with = [](Device device) {
    const SavedTensorHooksScope scope(
        {[](const Tensor& tensor) -> std::any { return tensor; },
         [device](const std::any& kept) { return std::any_cast<const Tensor&>(kept).to(device); }});
    const Tensor x = leaf_there({1, 2});
    return error_of([&] { backward(sum(mul(x, x))); });
  };
  EXPECT_EQ(error_with(kFirst), "no error");
  EXPECT_THAT(error_with(Device{}), HasSubstr("SavedTensorHooks: unpack gave"));
}

TEST(DeviceAutograd, MemoryOfAnotherTensor) {
  const Tensor x = constant({1, 2});
  EXPECT_THAT(error_of([&] { set_(x, there({3, 4})); }), HasSubstr("set_: expected a tensor on cpu, got one on"));
  EXPECT_EQ(error_of([&] { set_(there({1, 2}), there({3, 4})); }), "no error");
}

TEST(DeviceAutograd, TheShapeOfATensorThatWasMoved) {
  const Tensor y = scale(leaf_there({1, 2}), 2);
  take_memory(y, constant({3, 4}));
  EXPECT_EQ(shape_of(y).device(), Device{});
}

}  // namespace
}  // namespace tensord::autograd::device_autograd_test
