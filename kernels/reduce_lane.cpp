// Sums, means and extremes along the last dimension as steps of tile programs.
#include <algorithm>
#include <cmath>

#include "kernels/lane_call.h"
#include "kernels/lanes.h"
#include "kernels/pointwise.h"
#include "kernels/reduce_dims.h"

namespace tensord::kernels {
namespace {

void run_lane(const LaneCall& call, const void* from, const void* const*, void* to, int64_t length) {
  Accumulator accumulator = call.loops->start;
  call.loops->row(from, length, 0, call.power, &accumulator);
  if (call.compute == DType::kInt64) return store_tile(DType::kInt64, &accumulator, call.result, to, 1, 1);
  accumulator.value *= call.scale;
  if (call.result == DType::kFloat32)
    *static_cast<float*>(to) = static_cast<float>(accumulator.value);
  else
    store_tile(DType::kFloat64, &accumulator, call.result, to, 1, 1);
}

bool is_last_only(const Tensor& in, const std::optional<Dims>& dims) {
  const ReducedDims reduced(in, dims);
  for (int64_t d = 0; d < in.ndim(); ++d) {
    if (reduced.is_reduced[static_cast<size_t>(d)] != (d + 1 == in.ndim())) return false;
  }
  return in.ndim() > 0;
}

// `dims` is argument 1, an int or a list. `dtype` is the argument for the dtype, or -1.
void add(const char* op, Reducer reducer, bool is_mean, int dtype) {
  add_lane_maker(op, [=](std::span<const ops::Value> v) {
    const Tensor& in = v[0].to_tensor();
    std::optional<Dims> dims;
    if (v[1].is_int())
      dims = Dims{v[1].to_int()};
    else if (!v[1].is_none())
      dims = ops::Unbox<Dims>::get(v[1]);
    LaneCall call;
    if (!is_last_only(in, dims)) return call;
    DType result = in.dtype();
    if (dtype >= 0) {
      const ops::Value& asked = v[static_cast<size_t>(dtype)];
      result = !asked.is_none() ? asked.to_dtype() : is_floating(in.dtype()) || is_mean ? in.dtype() : DType::kInt64;
    }
    if (is_complex(result)) return call;
    call.compute = loop_dtype(result);
    call.result = result;
    call.reduces = true;
    call.exact_input = true;
    call.cost_ns = 0.06;
    call.loops = &reduce_loops(reducer, call.compute);
    if (is_mean) call.scale = 1.0 / static_cast<double>(in.sizes().back());
    call.run = run_lane;
    return call;
  });
}

[[maybe_unused]] const bool registered = [] {
  add("aten::sum.dim_IntList", Reducer::kSum, false, 3);
  add("aten::mean.dim", Reducer::kSum, true, 3);
  add("aten::amax", Reducer::kMax, false, -1);
  add("aten::amin", Reducer::kMin, false, -1);
  add("aten::prod.dim_int", Reducer::kProduct, false, 3);
  return true;
}();

}  // namespace
}  // namespace tensord::kernels
