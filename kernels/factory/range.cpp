#include <cmath>

#include "core/ops/op.h"

// Sequences of numbers: arange, linspace, logspace, range.
namespace tensord::kernels {
namespace {

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

TensorMeta range_end_meta(const Scalar& end, OptDType dtype, const Value& layout, OptDevice device, OptBool pin) {
  return range_meta(0, end, 1, dtype, layout, device, pin);
}
TensorMeta range_start_meta(const Scalar& start, const Scalar& end, OptDType dtype, const Value& layout,
                            OptDevice device, OptBool pin) {
  return range_meta(start, end, 1, dtype, layout, device, pin);
}

TensorMeta linspace_meta(const Scalar&, const Scalar&, int64_t steps, OptDType dtype, const Value&, OptDevice device,
                         OptBool) {
  check(steps >= 0, "number of steps must be non-negative");
  return {Dims{steps}, dtype.value_or(DType::kFloat32), {}, device.value_or(Device{})};
}

TensorMeta logspace_meta(const Scalar& start, const Scalar& end, int64_t steps, double, OptDType dtype,
                         const Value& layout, OptDevice device, OptBool pin) {
  return linspace_meta(start, end, steps, dtype, layout, device, pin);
}

OP("aten::arange").infer(range_end_meta);
OP("aten::arange.start").infer(range_start_meta);
OP("aten::arange.start_step").infer(range_meta);
OP("aten::linspace").infer(linspace_meta);
OP("aten::logspace").infer(logspace_meta);

}  // namespace
}  // namespace tensord::kernels
