#pragma once

#include <algorithm>

#include "core/tensor/loops.h"
#include "core/tensor/tensor.h"

// Iteration along one dimension: a row is the line of elements that share all other indices.
namespace tensord::kernels {

// The dtype that elements are computed in: float32, float64 or int64.
inline DType loop_dtype(DType dtype) {
  if (dtype == DType::kFloat64) return DType::kFloat64;
  return is_floating(dtype) ? DType::kFloat32 : DType::kInt64;
}

inline Dims without(const Dims& dims, int64_t dim) {
  Dims out = dims;
  if (!out.empty()) out.erase(static_cast<size_t>(dim));
  return out;
}

// Length and stride of the rows; a 0-d tensor is one row of one element.
inline int64_t line_length(const Tensor& tensor, int64_t dim) { return tensor.ndim() == 0 ? 1 : tensor.sizes()[dim]; }
inline int64_t line_stride(const Tensor& tensor, int64_t dim) { return tensor.ndim() == 0 ? 1 : tensor.strides()[dim]; }

// Calls fn(offsets) for every row of N operands, in parallel; offsets are the operands' first elements. `outer` are the
// sizes without the rows' dimension, with `strides` for each operand.
template <size_t N, class Fn>
void for_each_line(const Dims& outer, const std::array<Dims, N>& strides, int64_t length, Fn&& fn) {
  const LoopNest<N> nest(outer, strides);
  nest.parallel_rows(std::max<int64_t>(1, 16384 / std::max<int64_t>(1, length)),
                     [&](std::array<int64_t, N> offset, int64_t count, const std::array<int64_t, N>& step) {
                       for (int64_t i = 0; i < count; ++i) {
                         fn(offset);
                         for (size_t n = 0; n < N; ++n) offset[n] += step[n];
                       }
                     });
}

}  // namespace tensord::kernels
