#pragma once

#include <cstddef>
#include <string>

#include "core/tensor/dtype.h"

namespace tensord::distributed {

// How elements of several ranks become one. What each takes is the same with every backend:
//   sum, product   every dtype; of bools `or` and `and`
//   avg            floating and complex: the sum, divided by the number of ranks
//   premul_sum     floating and complex: each rank's elements times `factor`, then the sum
//   min, max       every dtype but complex; NaN when there is one
//   band, bor, bxor  integers and bool
// Sums of float16 and bfloat16 are rounded after each addition, those of integers wrap around.
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
// Throws Error{kInvalidArgument} that names operation, op and dtype where they do not go together.
ReduceFunction reduce_function(const std::string& operation, ReduceOp op, DType dtype);

// What comes before the reduction, of each rank's own elements, and after it, of the result.
void prepare_elements(ReduceOp op, DType dtype, void* data, size_t count);
void finish_elements(ReduceOp op, DType dtype, void* data, size_t count, int world_size);
bool has_preparation(ReduceOp op);

// data[i] = T(data[i] * factor), computed in float for float16 and bfloat16. Floating and complex dtypes.
void scale_elements(DType dtype, void* data, size_t count, double factor);

}  // namespace tensord::distributed
