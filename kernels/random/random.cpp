#include <random>

#include "core/ops/complex.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/random/fill.h"
#include "kernels/random/random.h"
#include "ops/index.h"
#include "ops/random.h"

// Random fillings of tensors; their loops are in fill_cpu.cpp.
namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::Value;
using OptDType = std::optional<DType>;
using OptDevice = std::optional<Device>;
using OptBool = std::optional<bool>;
using OptInt = std::optional<int64_t>;

// New tensors, drawn on their device.

Tensor rand(const IntList& sizes, OptDType dtype, const Value&, OptDevice device, OptBool) {
  return ops::uniform_(Tensor::empty(sizes, dtype.value_or(DType::kFloat32), device.value_or(Device{})));
}
Tensor randn(const IntList& sizes, OptDType dtype, const Value&, OptDevice device, OptBool) {
  return ops::normal_(Tensor::empty(sizes, dtype.value_or(DType::kFloat32), device.value_or(Device{})));
}
// Memory for a tensor like another, which is filled in memory order.
Tensor memory_like(const Tensor& x, OptDType dtype, OptDevice device, OptInt format) {
  Dims strides = contiguous_strides(x.sizes());
  if (format.value_or(1) >= 2) strides = channels_last_strides(x.sizes());
  if (format.value_or(1) == 1) strides = preserved_strides(x.sizes(), x.strides());
  const DType to = dtype.value_or(x.dtype());
  const Device where = device.value_or(x.device());
  return x.is_meta() ? Tensor::meta_strided(x.sizes(), std::move(strides), to, where)
                     : Tensor::empty_strided(x.sizes(), std::move(strides), to, where);
}
Tensor rand_like(const Tensor& x, OptDType dtype, const Value&, OptDevice device, OptBool, OptInt format) {
  return ops::uniform_(memory_like(x, dtype, device, format));
}
Tensor randn_like(const Tensor& x, OptDType dtype, const Value&, OptDevice device, OptBool, OptInt format) {
  return ops::normal_(memory_like(x, dtype, device, format));
}
Tensor randint(int64_t low, int64_t high, const IntList& sizes, OptDType dtype, const Value&, OptDevice device,
               OptBool) {
  return ops::random_(Tensor::empty(sizes, dtype.value_or(DType::kInt64), device.value_or(Device{})), low, high);
}
Tensor randint_like(const Tensor& x, int64_t low, int64_t high, OptDType dtype, OptDevice device, OptInt format) {
  return ops::random_(memory_like(x, dtype, device, format), low, high);
}

// On a device that draws itself, the order of random numbers, of which hardly two of 63 bits are the same.
Tensor randperm(int64_t n, OptDType dtype, const Value&, OptDevice device, OptBool) {
  check(n >= 0, "n must be non-negative, got", n);
  const DType to = dtype.value_or(DType::kInt64);
  if (device.value_or(Device{}).is_host()) return shuffled_numbers(n).to(to);
  return ops::argsort(ops::random_(Tensor::empty(Dims{n}, DType::kInt64, *device))).to(to);
}

OP("aten::manual_seed")
    .impl([](int64_t seed) {
      ops::Generator& generator = ops::current_generator(Device{});
      const auto lock = generator.lock();
      generator.set_seed(static_cast<uint64_t>(seed));
    })
    .impure();
OP("aten::seed")
    .impl([]() {
      ops::Generator& generator = ops::current_generator(Device{});
      const auto lock = generator.lock();
      std::random_device device;
      const uint64_t seed = (uint64_t{device()} << 21) ^ device();
      generator.set_seed(seed);
      return static_cast<int64_t>(seed);
    })
    .impure();
OP("aten::uniform_").gradient(kZeroGradient).saves("").random();
OP("aten::normal_").gradient(kZeroGradient).saves("").random();
OP("aten::bernoulli_.float").gradient(kZeroGradient).saves("").random();
OP("aten::bernoulli").gradient(kZeroGradient).saves("").random();
OP("aten::bernoulli.p").gradient(kZeroGradient).saves("").random();
OP("aten::random_.from").gradient(kZeroGradient).saves("").random();
OP("aten::random_.to").gradient(kZeroGradient).saves("").random();
OP("aten::rand").impl(rand).random();
OP("aten::randn").impl(randn).random();
OP("aten::rand.generator")
    .impl([](const IntList& sizes, const Value&, OptDType dtype, const Value& layout, OptDevice device, OptBool pin) {
      return rand(sizes, dtype, layout, device, pin);
    })
    .random();
OP("aten::randn.generator")
    .impl([](const IntList& sizes, const Value&, OptDType dtype, const Value& layout, OptDevice device, OptBool pin) {
      return randn(sizes, dtype, layout, device, pin);
    })
    .random();
OP("aten::rand_like").impl(rand_like).constant_result().kind(ops::OpKind::kComposite).random();
OP("aten::randn_like").impl(randn_like).constant_result().kind(ops::OpKind::kComposite).random();
OP("aten::randint")
    .impl([](int64_t high, const IntList& sizes, OptDType dtype, const Value& layout, OptDevice device, OptBool pin) {
      return randint(0, high, sizes, dtype, layout, device, pin);
    })
    .random();
OP("aten::randint.low").impl(randint).random();
OP("aten::randint_like")
    .impl([](const Tensor& x, int64_t high, OptDType dtype, const Value&, OptDevice device, OptBool, OptInt format) {
      return randint_like(x, 0, high, dtype, device, format);
    })
    .constant_result()
    .kind(ops::OpKind::kComposite)
    .random();
OP("aten::randint_like.low_dtype")
    .impl([](const Tensor& x, int64_t low, int64_t high, OptDType dtype, const Value&, OptDevice device, OptBool,
             OptInt format) { return randint_like(x, low, high, dtype, device, format); })
    .constant_result()
    .kind(ops::OpKind::kComposite)
    .random();
OP("aten::randperm").impl(randperm).random();
// Draws the real and the imaginary parts.
IMPL("aten::uniform_ aten::normal_", ops::kComplexCPU, ops::kSameAsDense).linear();
IMPL("aten::rand_like aten::randn_like", ops::kComplexCPU, ops::kSameAsDense);
}  // namespace
}  // namespace tensord::kernels
