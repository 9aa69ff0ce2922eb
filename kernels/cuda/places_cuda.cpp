// Reads and writes at places that masks, strides or group numbers determine, on a CUDA device: composed of other
// operators, and of sums at places that may coincide.
#include <algorithm>
#include <limits>

#include "core/tensor/device_copy.h"
#include "kernels/base/positions.h"
#include "kernels/cuda/index.h"
#include "kernels/view/geometry.h"
#include "kernels/view/view.h"
#include "ops/embedding.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::KernelContext;
using ops::Scalar;

Tensor masked_scatter_cuda(const Tensor& x, const Tensor& mask, const Tensor& source) {
  check(mask.dtype() == DType::kBool, "masked_scatter_ only supports boolean masks, but got mask with dtype ",
        name_of(mask.dtype()));
  check(x.dtype() == source.dtype(), "masked_scatter: expected self and source to have same dtypes but got ",
        name_of(x.dtype()), " and ", name_of(source.dtype()));
  const Dims sizes = broadcast_sizes(x.sizes(), mask.sizes());
  const Tensor out = expand(x, sizes).clone();
  if (out.numel() == 0) return out;
  const Tensor used = reshape(expand(mask, sizes), Dims{-1}), sums = ops::cumsum(used, 0);
  const int64_t count = select(sums, 0, -1).item_int();
  check(count <= source.numel(), "masked_scatter_: expected more elements in source");
  if (count == 0) return out;
  const Tensor places = ops::clamp_min(ops::sub(sums, Scalar(1)), Scalar(0));
  const Tensor taken = view(ops::index_select(reshape(source, Dims{-1}), 0, places), sizes);
  out.copy_from(ops::where(expand(mask, sizes), taken, out));
  return out;
}
IMPL("aten::masked_scatter", kCUDA, masked_scatter_cuda);

// --- places given by strides

// target += source, of equal sizes; elements of the target may overlap.
void add_at_places(const Tensor& target, const Tensor& source) {
  IndexedAccess access;
  access.sizes = source.sizes();
  access.x_strides = target.strides();
  access.other_strides = source.strides();
  run_indexed_cuda(IndexUse::kAdd, target, access, source);
}
DType dtype_of_sums(DType dtype) { return size_of(dtype) == 2 && is_floating(dtype) ? DType::kFloat32 : dtype; }

Tensor zeros_at(const Dims& sizes, DType dtype, Device device) {
  return ops::zeros(sizes, {.dtype = dtype, .device = device});
}

IMPL("aten::unfold_backward", kCUDA,
     [](const KernelContext&, const Tensor& g, const IntList& sizes, int64_t dim, int64_t size, int64_t step,
        Tensor& out) {
       const Tensor sums = zeros_at(sizes, dtype_of_sums(g.dtype()), g.device()),
                    windows = unfold(sums, dim, size, step);
       check(windows.sizes() == g.sizes(), "the gradient has the shape ", g.sizes(), " where ", windows.sizes(),
             " is expected");
       add_at_places(windows, g.to(sums.dtype()));
       out.copy_from(sums);
     });

// As on the CPU: reads memory that holds x in the layout `from` in the layout `to`. Elements that overlap in `input`,
// one of the two layouts, share the value.
void move_geometry_cuda(const Tensor& x, const Geometry& from, const Geometry& to, const Geometry& input, Tensor& out) {
  if (out.numel() == 0) return;
  if (x.numel() == 0) return zero_elements(out);
  const DType dtype = dtype_of_sums(x.dtype());
  const int64_t begin = std::min(from.offset, to.offset), end = std::max(from.end(), to.end());
  const auto part_of = [&](const Tensor& memory, const Geometry& part) {
    return memory.as_view(part.sizes, part.strides, part.offset - begin);
  };
  Tensor memory = zeros_at(Dims{end - begin}, dtype, x.device());
  add_at_places(part_of(memory, from), x.to(dtype));
  if (std::find(input.strides.begin(), input.strides.end(), 0) != input.strides.end()) {
    const Tensor counts = zeros_at(memory.sizes(), dtype, x.device());
    const Tensor one = ops::ones(Dims(input.sizes.size(), 1), {.dtype = dtype, .device = x.device()});
    add_at_places(part_of(counts, input), expand(one, input.sizes));
    memory = ops::div(memory, ops::clamp_min(counts, Scalar(1)));
  }
  out.copy_from(part_of(memory, to));
}
IMPL("tensord::as_strided_scatter_add", kCUDA,
     [](const KernelContext&, const Tensor& g, const IntList& input_sizes, const IntList& input_strides,
        int64_t input_offset, const IntList& size, const IntList& stride, int64_t offset, Tensor& out) {
       const Geometry input{input_sizes, input_strides, input_offset};
       move_geometry_cuda(g, {size, stride, offset}, input, input, out);
     });
IMPL("tensord::as_strided_gather", kCUDA,
     [](const KernelContext&, const Tensor& x, const IntList& self_strides, int64_t self_offset, const IntList& size,
        const IntList& stride, int64_t offset, Tensor& out) {
       const Geometry input{x.sizes(), self_strides, self_offset};
       move_geometry_cuda(x, input, {size, stride, offset}, input, out);
     });

// --- rows of groups

IMPL("tensord::gather_rows", kCUDA, [](const KernelContext&, const Tensor& places, const Tensor& x, Tensor& out) {
  out.copy_from(ops::index_select(x, 0, places));
});
Tensor sums_of_groups(const Tensor& groups, const Tensor& values, const Dims& sizes) {
  return ops::index_add(zeros_at(sizes, values.dtype(), values.device()), 0, groups, values);
}
IMPL("tensord::scatter_rows", kCUDA,
     [](const KernelContext&, const Tensor& places, const Tensor& values, int64_t, Tensor& out) {
       out.copy_from(sums_of_groups(places, values.to(dtype_of_sums(values.dtype())), out.sizes()));
     });

// --- numbers as mantissa and power of two

// By the bits of float64, which represents all numbers of the other dtypes. Subnormal numbers are scaled first.
IMPL("aten::frexp.Tensor", kCUDA, [](const KernelContext&, const Tensor& x, Tensor& mantissa, Tensor& exponent) {
  constexpr int64_t kExponentBits = int64_t{0x7ff} << 52, kHalf = int64_t{1022} << 52;
  const Tensor given = x.to(DType::kFloat64).contiguous();
  const Tensor is_small = ops::lt(ops::abs(given), Scalar(std::numeric_limits<double>::min()));
  const Tensor wide = ops::where(is_small, ops::mul(given, Scalar(0x1p54)), given);
  const Tensor bits = ops::view(wide, DType::kInt64);
  const Tensor power = ops::sub(ops::bitwise_right_shift(ops::bitwise_and(bits, Scalar(kExponentBits)), Scalar(52)),
                                ops::add(ops::mul(is_small.to(DType::kInt64), Scalar(54)), Scalar(1022)));
  const Tensor fraction = ops::bitwise_or(ops::bitwise_and(bits, Scalar(~kExponentBits)), Scalar(kHalf));
  const Tensor has_power = ops::logical_and(ops::ne(given, Scalar(0)), ops::isfinite(given));
  mantissa.copy_from(ops::where(has_power, ops::view(fraction, DType::kFloat64), given));
  exponent.copy_from(ops::mul(power, has_power.to(DType::kInt64)));
});

}  // namespace
}  // namespace tensord::kernels
