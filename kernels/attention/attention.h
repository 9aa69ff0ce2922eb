#pragma once

#include <cstdint>

namespace tensord::kernels {

// How the mask changes the scores before the softmax.
enum class AttentionMask : uint8_t {
  kNone,
  kAdd,        // f32, added to the scores
  kFill,       // bool; true sets the score to `fill`
  kFillFalse,  // bool; false sets the score to `fill`
};

// f32 attention of one head: softmax(scale * query @ key^T, masked) @ value. Strides in elements; the columns
// of `out` are dense.
struct AttentionShape {
  int64_t queries, keys, depth, value_depth;
  int64_t query_row, query_col, key_row, key_col, value_row, value_col, mask_row, mask_col, out_row;
  float scale;
  AttentionMask mask = AttentionMask::kNone;
  float fill = 0;
  bool is_causal = false;  // row i sees keys 0 … i
  bool is_safe = false;    // a row whose scores are all minus infinity gives zeros, not NaN
};

// The tensors of one head.
struct AttentionHead {
  const float *query, *key, *value;
  const void* mask;
  float* out;
};

// The number of query rows to process together, so that their scores stay in the cache.
int64_t attention_block_rows(const AttentionShape& shape);
// The number of floats that attend_rows needs as scratch, aligned to 64 bytes.
int64_t attention_scratch(const AttentionShape& shape);
// Computes rows [begin, end), at most attention_block_rows. `is_new_head`: the scratch does not hold this head's key,
// value and mask yet. The result of a row does not depend on the rows processed with it.
void attend_rows(const AttentionShape& shape, const AttentionHead& head, int64_t begin, int64_t end, float* scratch,
                 bool is_new_head);

}  // namespace tensord::kernels
