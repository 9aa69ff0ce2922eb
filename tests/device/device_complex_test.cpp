// Complex numbers on a device: kernels derived from the CPU's, operators composed of real ones, and unsupported
// operators.
#include "core/ops/complex.h"
#include "core/tensor/complex.h"
#include "tests/autograd/support.h"
#include "tests/device/async_device.h"
#include "tests/device/async_kernels.h"

namespace tensord::device_complex_test {
namespace {

using autograd::constant;
using autograd::error_of;
using autograd::Numbers;
using late::kFirst;
using ops::call_by_name;

[[maybe_unused]] const bool is_installed = (late::install(), late::install_kernels(), true);

constexpr Device kCudaDevice{kCUDA, 0};

// A complex vector on the device, from pairs of numbers.
Tensor complex_there(const Numbers& pairs) {
  const Tensor flat = constant(pairs);
  return as_complex(flat.as_view(Dims{flat.numel() / 2, 2}, Dims{2, 1}, 0)).to(kFirst);
}
Numbers pairs_of(const Tensor& x) {
  EXPECT_EQ(x.device(), kFirst);
  return autograd::numbers(as_real_pairs(x.to(Device{})));
}

TEST(DeviceComplex, FormsAreDerived) {
  late::HostTouches touches;
  const Tensor x = complex_there({1, 2, 3, -1}), i = complex_there({0, 1});
  EXPECT_EQ(pairs_of(call_by_name("aten::mul.Tensor", x, i)), (Numbers{-2, 1, 1, 3}));
  EXPECT_EQ(pairs_of(call_by_name("aten::mul.Scalar", x, ops::Scalar(Complex128(0, 1)))), (Numbers{-2, 1, 1, 3}));
  EXPECT_EQ(touches.take(), 0u);
}

// A host scalar is copied at the call.
TEST(DeviceComplex, TakeNumbersOfTheHost) {
  const Tensor x = complex_there({1, 2}), i = ops::tensor_of(ops::Scalar(Complex128(0, 1)));
  EXPECT_EQ(pairs_of(call_by_name("aten::add.Tensor", x, i, 2)), (Numbers{1, 4}));
}

TEST(DeviceComplex, PartsStayLate) {
  const Tensor x = complex_there({1, 2, 3, -1});
  const Tensor y = call_by_name("aten::cat", std::vector<Tensor>{x, x}, 0);
  EXPECT_GT(late::waiting(), 0u);
  EXPECT_EQ(pairs_of(y), (Numbers{1, 2, 3, -1, 1, 2, 3, -1}));
  EXPECT_EQ(pairs_of(call_by_name("aten::dot", x, x)), (Numbers{5, -2}));
}

TEST(DeviceComplex, WriteInPlaceAndIntoOut) {
  const Tensor x = complex_there({1, 2}), out = Tensor::empty(Dims{0}, DType::kComplex128, kFirst);
  call_by_name("aten::mul.out", x, x, out);
  EXPECT_EQ(pairs_of(out), (Numbers{-3, 4}));
  call_by_name("aten::mul_.Tensor", x, x);
  EXPECT_EQ(pairs_of(x), (Numbers{-3, 4}));
  EXPECT_EQ(x.version(), 1u);
}

TEST(DeviceComplex, HaveGradients) {
  const Tensor x = complex_there({1, 2});
  autograd::set_requires_grad(x);
  const Tensor y = call_by_name("aten::sum", call_by_name("aten::mul.Tensor", x, x));
  const std::vector<Tensor> roots{y}, leaves{x}, given{complex_there({1, 0}).as_view(Dims{}, Dims{}, 0)};
  EXPECT_EQ(pairs_of(autograd::grad(roots, leaves, given)[0]), (Numbers{2, -4}));
}

TEST(DeviceComplex, ShapesAreInferred) {
  for (const char* name : {"aten::mul.Tensor", "aten::dot"}) {
    const Tensor x = Tensor::meta(Dims{3}, DType::kComplex64, kFirst);
    const std::vector<ops::Value> arguments{x, x};
    const Tensor y = ops::infer(ops::get_op(name), arguments).front().to_tensor();
    EXPECT_TRUE(y.is_meta());
    EXPECT_EQ(y.dtype(), DType::kComplex64);
    EXPECT_EQ(y.device(), kFirst);
  }
}

// On every device the operators that the CPU has; others are refused by name.
TEST(DeviceComplex, AreRefusedByNameWhereThereAreNone) {
  const Tensor x = Tensor::meta(Dims{3}, DType::kComplex64, kCudaDevice);
  const std::vector<ops::Value> one{x}, two{x, x};
  EXPECT_EQ(error_of([&] {
              ops::infer(ops::get_op("aten::floor"), one);
            }).find("aten::floor has no kernel for Complex on cuda"),
            0u);
  for (const char* name : {"aten::mul.Tensor", "aten::dot"}) {
    const Tensor y = ops::infer(ops::get_op(name), two).front().to_tensor();
    EXPECT_EQ(y.dtype(), DType::kComplex64);
    EXPECT_EQ(y.device(), kCudaDevice);
  }
}

}  // namespace
}  // namespace tensord::device_complex_test
