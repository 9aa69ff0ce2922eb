#include <cmath>

#include "core/base/parallel.h"
#include "core/ops/op.h"

// Sequences of numbers: arange, linspace, logspace, range.
namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::Scalar;
using ops::TensorMeta;
using ops::Value;
using OptDType = std::optional<DType>;
using OptDevice = std::optional<Device>;
using OptBool = std::optional<bool>;

constexpr double kMaxCount = 1e15;

int64_t range_count(const Scalar& start, const Scalar& end, const Scalar& step) {
  const bool whole = !start.is_float() && !end.is_float() && !step.is_float();
  check(step.to_double() != 0, "step must be nonzero");
  check(std::isfinite(start.to_double()) && std::isfinite(end.to_double()), "unsupported range: ", start.to_double(),
        " -> ", end.to_double());
  check(step.to_double() > 0 ? end.to_double() >= start.to_double() : end.to_double() <= start.to_double(),
        "upper bound and larger bound inconsistent with step sign");
  if (whole) {
    const __int128 distance = static_cast<__int128>(end.to_int()) - start.to_int(), stride = step.to_int();
    const __int128 count = (distance + stride + (stride > 0 ? -1 : 1)) / stride;
    check(count <= static_cast<__int128>(kMaxCount), "invalid size, possible overflow?");
    return static_cast<int64_t>(count);
  }
  const double count = std::ceil((end.to_double() - start.to_double()) / step.to_double());
  check(count >= 0 && count <= kMaxCount, "invalid size, possible overflow?");
  return static_cast<int64_t>(count);
}

TensorMeta range_meta(const Scalar& start, const Scalar& end, const Scalar& step, OptDType dtype, const Value&,
                      OptDevice device, OptBool) {
  const bool has_float = start.is_float() || end.is_float() || step.is_float();
  return {Dims{range_count(start, end, step)},
          dtype.value_or(has_float ? DType::kFloat32 : DType::kInt64),
          {},
          device.value_or(Device{})};
}

void range_kernel(const KernelContext&, const Scalar& start, const Scalar&, const Scalar& step, OptDType, const Value&,
                  OptDevice, OptBool, Tensor& out) {
  dispatch_all(out.dtype(), "arange", [&]<class T>() {
    T* to = out.data<T>();
    using Compute = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
    const Compute first = start.to<Compute>(), stride = step.to<Compute>();
    parallel_for(out.numel(), 32768, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        to[i] = static_cast<T>(static_cast<Compute>(first + stride * static_cast<Compute>(i)));
      }
    });
  });
}

TensorMeta range_end_meta(const Scalar& end, OptDType dtype, const Value& layout, OptDevice device, OptBool pin) {
  return range_meta(0, end, 1, dtype, layout, device, pin);
}
void range_end_kernel(const KernelContext& context, const Scalar& end, OptDType dtype, const Value& layout,
                      OptDevice device, OptBool pin, Tensor& out) {
  range_kernel(context, 0, end, 1, dtype, layout, device, pin, out);
}
TensorMeta range_start_meta(const Scalar& start, const Scalar& end, OptDType dtype, const Value& layout,
                            OptDevice device, OptBool pin) {
  return range_meta(start, end, 1, dtype, layout, device, pin);
}
void range_start_kernel(const KernelContext& context, const Scalar& start, const Scalar& end, OptDType dtype,
                        const Value& layout, OptDevice device, OptBool pin, Tensor& out) {
  range_kernel(context, start, end, 1, dtype, layout, device, pin, out);
}

TensorMeta linspace_meta(const Scalar&, const Scalar&, int64_t steps, OptDType dtype, const Value&, OptDevice device,
                         OptBool) {
  check(steps >= 0, "number of steps must be non-negative");
  return {Dims{steps}, dtype.value_or(DType::kFloat32), {}, device.value_or(Device{})};
}

// From both ends, so that the last element is `end` itself. Value i of the sequence in type Step.
template <class Step>
Step linear_at(Step start, Step end, Step step, int64_t i, int64_t steps) {
  return i < steps / 2 ? start + step * static_cast<Step>(i) : end - step * static_cast<Step>(steps - i - 1);
}

void linspace_kernel(const KernelContext&, const Scalar& start, const Scalar& end, int64_t steps, OptDType,
                     const Value&, OptDevice, OptBool, Tensor& out) {
  dispatch_all(out.dtype(), "linspace", [&]<class T>() {
    T* to = out.data<T>();
    using Step = std::conditional_t<std::is_same_v<T, double>, double, float>;
    using Bound = std::conditional_t<std::is_integral_v<T>, int64_t, Step>;
    const Bound first = start.to<Bound>(), last = end.to<Bound>();
    const Step step = steps > 1 ? static_cast<Step>(last - first) / static_cast<Step>(steps - 1) : Step(0);
    for (int64_t i = 0; i < steps; ++i) {
      if (steps == 1)
        to[i] = static_cast<T>(first);
      else
        to[i] = static_cast<T>(linear_at<Step>(static_cast<Step>(first), static_cast<Step>(last), step, i, steps));
    }
  });
}

TensorMeta logspace_meta(const Scalar& start, const Scalar& end, int64_t steps, double, OptDType dtype,
                         const Value& layout, OptDevice device, OptBool pin) {
  return linspace_meta(start, end, steps, dtype, layout, device, pin);
}

void logspace_kernel(const KernelContext&, const Scalar& start, const Scalar& end, int64_t steps, double base, OptDType,
                     const Value&, OptDevice, OptBool, Tensor& out) {
  dispatch_all(out.dtype(), "logspace", [&]<class T>() {
    T* to = out.data<T>();
    const double first = start.to_double(), last = end.to_double();
    const double step = steps > 1 ? (last - first) / static_cast<double>(steps - 1) : 0;
    for (int64_t i = 0; i < steps; ++i) {
      to[i] = static_cast<T>(static_cast<float>(std::pow(base, linear_at(first, last, step, i, steps))));
      if constexpr (std::is_same_v<T, double>) to[i] = std::pow(base, linear_at(first, last, step, i, steps));
    }
  });
}

#define OPTIONS "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
OP("aten::arange(Scalar end, *, " OPTIONS ") -> Tensor").infer(range_end_meta);
KERNEL("aten::arange", kCPU, range_end_kernel);
OP("aten::arange.start(Scalar start, Scalar end, *, " OPTIONS ") -> Tensor").infer(range_start_meta);
KERNEL("aten::arange.start", kCPU, range_start_kernel);
OP("aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, " OPTIONS ") -> Tensor").infer(range_meta);
KERNEL("aten::arange.start_step", kCPU, range_kernel);
OP("aten::linspace(Scalar start, Scalar end, int steps, *, " OPTIONS ") -> Tensor").infer(linspace_meta);
KERNEL("aten::linspace", kCPU, linspace_kernel);
OP("aten::logspace(Scalar start, Scalar end, int steps, float base=10., *, " OPTIONS ") -> Tensor")
    .infer(logspace_meta);
KERNEL("aten::logspace", kCPU, logspace_kernel);

}  // namespace
}  // namespace tensord::kernels
