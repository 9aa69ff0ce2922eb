// Loops of sequences of numbers.
#include <cmath>

#include "core/base/parallel.h"
#include "core/ops/op.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::Scalar;
using ops::Value;
using OptDType = std::optional<DType>;
using OptDevice = std::optional<Device>;
using OptBool = std::optional<bool>;

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

void range_end_kernel(const KernelContext& context, const Scalar& end, OptDType dtype, const Value& layout,
                      OptDevice device, OptBool pin, Tensor& out) {
  range_kernel(context, 0, end, 1, dtype, layout, device, pin, out);
}
void range_start_kernel(const KernelContext& context, const Scalar& start, const Scalar& end, OptDType dtype,
                        const Value& layout, OptDevice device, OptBool pin, Tensor& out) {
  range_kernel(context, start, end, 1, dtype, layout, device, pin, out);
}

// Value i of the sequence, computed in type Step. Counts from both ends, so that the last element is exactly `end`.
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

IMPL("aten::arange", kCPU, range_end_kernel);
IMPL("aten::arange.start", kCPU, range_start_kernel);
IMPL("aten::arange.start_step", kCPU, range_kernel);
IMPL("aten::linspace", kCPU, linspace_kernel);
IMPL("aten::logspace", kCPU, logspace_kernel);

}  // namespace
}  // namespace tensord::kernels
