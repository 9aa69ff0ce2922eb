#pragma once

#include <cstdint>

namespace tensord::kernels {

// What happens to the scores before the softmax.
enum class AttentionMask : uint8_t {
  kNone,
  kAdd,        // f32 added
  kFill,       // a bool; where it is true the score becomes `fill`
  kFillFalse,  // where it is false
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

// The memory of one head.
struct AttentionHead {
  const float *query, *key, *value;
  const void* mask;
  float* out;
};

// Rows of queries that are best done together: their scores stay in the cache.
int64_t attention_block_rows(const AttentionShape& shape);
// Floats that attend_rows needs, aligned to 64 bytes.
int64_t attention_scratch(const AttentionShape& shape);
// Rows [begin, end), at most attention_block_rows. `is_new_head`: what the scratch holds of key, value and
// mask is not of this head. A row's result does not depend on which rows are done with it.
void attend_rows(const AttentionShape& shape, const AttentionHead& head, int64_t begin, int64_t end, float* scratch,
                 bool is_new_head);

}  // namespace tensord::kernels
