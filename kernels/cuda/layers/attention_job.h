#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"

namespace tensord::kernels {

inline constexpr int kAttentionDims = 8;  // batch dimensions that cannot be merged

enum class ScoreMask : int8_t { kNone, kAdd, kFill, kFillFalse };  // the latter two: bools, true or false hides a score

// kDots: the sum of out * gradient of each row, which the passes behind it read. kOfQuery, kOfKey, kOfValue: the
// gradient of one operand. kKept: what dropout multiplies the weights by.
enum class AttentionPass : int8_t { kForward, kDots, kOfQuery, kOfKey, kOfValue, kKept };

// kStatistics and kDots have one number a row: log(sum(exp(scores))), and the sums of the pass kDots; of float32, or of
// float64 where the other operands are. kResult is what a pass behind kDots writes.
struct AttentionOperand {
  enum : int { kQuery, kKey, kValue, kMask, kOut, kStatistics, kGradient, kDots, kResult, kCount };
};

// tensord::attention and its gradient. Sizes of a batch of heads, strides in elements, 0 where an operand is broadcast.
struct AttentionJob {
  AttentionPass pass = AttentionPass::kForward;
  int8_t dtype = 0;  // of all but bools and numbers of rows
  ScoreMask mask = ScoreMask::kNone;
  bool is_causal = false;  // row i sees keys 0 … i
  bool is_safe = false;    // a row whose scores are all minus infinity gives zeros, not NaN
  // The first `result_dims` dimensions number the heads of the result. Along the others it is broadcast in the forward
  // pass, so their heads are summed.
  int dims = 0, result_dims = 0;
  int64_t heads = 0, summed_heads = 1;
  int64_t queries = 0, keys = 0, depth = 0, value_depth = 0;
  double scale = 1, fill = 0;
  int64_t sizes[kAttentionDims] = {}, strides[AttentionOperand::kCount][kAttentionDims] = {};
  int64_t rows[AttentionOperand::kCount] = {},
          columns[AttentionOperand::kCount] = {};      // steps of the last two dimensions
  cuda::DeviceAddress data[AttentionOperand::kCount];  // null: kStatistics, where nobody asks for them

  // Each weight is kept with the probability 1 - dropout. The forward pass draws by `seed` and `offset` and writes them
  // to `philox`, two of int64; the others read them there and draw the same.
  double dropout = 0;
  uint64_t seed = 0, offset = 0;
  cuda::DeviceAddress philox;
};

}  // namespace tensord::kernels
