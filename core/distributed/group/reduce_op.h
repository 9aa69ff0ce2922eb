#pragma once

#include <cstddef>
#include <string>

#include "core/tensor/dtype.h"

namespace tensord::distributed {

// A reduction of the elements of several ranks. The supported dtypes are the same with every backend:
//     sum, product   every dtype; `or` and `and` for bool
//     avg            floating and complex: the sum, divided by the number of ranks
//     premul_sum     floating and complex: the sum of each rank's elements times `factor`
//     min, max       every dtype but complex; NaN if any element is NaN
//     band, bor, bxor  integers and bool
// Sums of float16 and bfloat16 are rounded after each addition; sums of integers wrap around.
struct ReduceOp {
  enum class Kind { kSum, kAvg, kProduct, kMin, kMax, kBand, kBor, kBxor, kPremulSum };
  Kind kind = Kind::kSum;
  double factor = 1;  // of premul_sum

  bool operator==(const ReduceOp&) const = default;
};

inline constexpr ReduceOp kSum{ReduceOp::Kind::kSum}, kAvg{ReduceOp::Kind::kAvg}, kProduct{ReduceOp::Kind::kProduct},
    kMin{ReduceOp::Kind::kMin}, kMax{ReduceOp::Kind::kMax}, kBand{ReduceOp::Kind::kBand}, kBor{ReduceOp::Kind::kBor},
    kBxor{ReduceOp::Kind::kBxor};
inline constexpr ReduceOp premul_sum(double factor) { return {ReduceOp::Kind::kPremulSum, factor}; }

// "sum", "premul_sum(0.5)".
std::string to_string(ReduceOp op);

// out[i] = a[i] op b[i]; `out` may be `a` or `b`.
using ReduceFunction = void (*)(void* out, const void* a, const void* b, size_t count);
// Throws Error{kInvalidArgument} that names operation, op and dtype if the op does not support the dtype.
ReduceFunction reduce_function(const std::string& operation, ReduceOp op, DType dtype);

// Applied to each rank's own elements before the reduction, and to the result after it.
void prepare_elements(ReduceOp op, DType dtype, void* data, size_t count);
void finish_elements(ReduceOp op, DType dtype, void* data, size_t count, int world_size);
bool has_preparation(ReduceOp op);

// data[i] = T(data[i] * factor), computed in float for float16 and bfloat16. Floating and complex dtypes only.
void scale_elements(DType dtype, void* data, size_t count, double factor);

}  // namespace tensord::distributed
