#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"

namespace tensord::kernels {

inline constexpr int kAttentionDims = 8;  // batch dimensions that cannot be merged

enum class ScoreMask : int8_t { kNone, kAdd, kFill, kFillFalse };  // the latter two: bools, true or false hides a score

// tensord::attention. Operands are numbered query, key, value, mask, out; sizes of a batch of heads, strides in
// elements, 0 where an operand is broadcast.
struct AttentionJob {
  int8_t dtype = 0;  // of all but bools
  ScoreMask mask = ScoreMask::kNone;
  bool is_causal = false;  // row i sees keys 0 … i
  bool is_safe = false;    // a row whose scores are all minus infinity gives zeros, not NaN
  int dims = 0;
  int64_t heads = 0, queries = 0, keys = 0, depth = 0, value_depth = 0;
  double scale = 1, fill = 0;
  int64_t sizes[kAttentionDims] = {}, strides[5][kAttentionDims] = {};
  int64_t rows[5] = {}, columns[5] = {};  // steps of the last two dimensions
  cuda::DeviceAddress data[5];
};

}  // namespace tensord::kernels
