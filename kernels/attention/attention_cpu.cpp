// Attention of one head in f32, for each instruction set. Keys are packed so that the scores come out in
// whole vectors; a block of rows keeps all its scores in scratch, so that the softmax is the plain one.
#include "kernels/attention/attention.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/attention_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef TENSORD_ATTENTION_LAYOUT
#define TENSORD_ATTENTION_LAYOUT
namespace tensord::kernels {
namespace {

constexpr int64_t kWidest = 16;          // floats in the longest vector of any instruction set
constexpr int64_t kDepthBlock = 256;     // keys whose values are multiplied in one step
constexpr int64_t kFewQueries = 4;       // up to this many keys are read in place
constexpr int64_t kQueriesToPack = 24;   // from this many on, copying the values together pays off
constexpr int64_t kScoreFloats = 12288;  // of one block of rows

constexpr int64_t round_up(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }

// Where the parts of the scratch begin, in floats.
struct AttentionScratch {
  explicit AttentionScratch(const AttentionShape& s) {
    key_stride = round_up(s.keys, kWidest);
    if (key_stride % 1024 == 0) key_stride += kWidest;  // rows one page apart would compete for the same cache lines
    value_stride = round_up(s.value_depth, kWidest);
    const int64_t rows = attention_block_rows(s);
    values = s.depth * key_stride;
    scores = values + s.keys * value_stride;
    mask = scores + rows * key_stride;
    out = mask + key_stride;
    sums = out + rows * value_stride;
    total = sums + round_up(rows, kWidest);
  }
  int64_t key_stride, value_stride;
  int64_t values, scores, mask, out, sums, total;  // the keys begin at 0
};

}  // namespace
}  // namespace tensord::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

using TileT = float;
#include "kernels/gemm/gemm_tile-inl.h"

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// exp(x) for x <= 0; a NaN stays one. What would be below the smallest normal number is 0.
HWY_INLINE TileV exp_not_positive(TileV x) {
  const TileD d;
  const hn::RebindToSigned<TileD> di;
  // x = (n + f) log 2 with |f| <= 1/2. Adding this number leaves n in the lowest bits.
  const TileV magic = hn::Set(d, 12582912.0f), log2e = hn::Set(d, 1.44269504f);
  const TileV shifted = hn::MulAdd(x, log2e, magic);
  const TileV f = hn::MulSub(x, log2e, hn::Sub(shifted, magic));
  TileV p = hn::Set(d, 0.00132647273f);
  p = hn::MulAdd(p, f, hn::Set(d, 0.00967151279f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.0555073374f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.240222421f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.693146978f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
  const auto power = hn::Add(hn::ShiftLeft<23>(hn::BitCast(di, shifted)), hn::Set(di, 0x3f800000));
  const TileV y = hn::Mul(p, hn::BitCast(d, power));
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, -87.3f)), hn::Zero(d), y);
}

// Adds the mask to, or fills, `columns` scores; whole vectors.
void mask_row(const AttentionShape& s, const float* mask, float* scores, int64_t columns) {
  const TileD d;
  const TileV fill = hn::Set(d, s.fill), zero = hn::Zero(d);
  for (int64_t j = 0; j < columns; j += tile_lanes()) {
    const TileV m = hn::Load(d, mask + j), x = hn::Load(d, scores + j);
    hn::Store(s.mask == AttentionMask::kAdd ? hn::Add(x, m) : hn::IfThenElse(hn::Ne(m, zero), fill, x), d, scores + j);
  }
}

// The maximum does not tell whether there was a NaN among the scores: a comparison may have skipped it.
bool is_all_hidden(const float* scores, int64_t columns, float max) {
  return max == kMinusInfinity &&
         std::all_of(scores, scores + columns, [](float score) { return score == kMinusInfinity; });
}

// Turns a row of scores into exp(score - maximum) and returns their sum. With `is_safe`, a row that sees no key becomes
// zeros and returns 1.
float exponentials(float* scores, int64_t columns, bool is_safe) {
  const TileD d;
  const int64_t lanes = tile_lanes();
  TileV most0 = hn::Set(d, kMinusInfinity), most1 = most0;
  int64_t j = 0;
  for (; j + 2 * lanes <= columns; j += 2 * lanes) {
    most0 = hn::Max(hn::Load(d, scores + j), most0);
    most1 = hn::Max(hn::Load(d, scores + j + lanes), most1);
  }
  if (j < columns) most0 = hn::Max(hn::Load(d, scores + j), most0);
  const TileV max = hn::MaxOfLanes(d, hn::Max(most0, most1));
  if (is_safe && is_all_hidden(scores, columns, hn::GetLane(max))) {
    std::fill(scores, scores + columns, 0.0f);
    return 1;
  }
  TileV sum0 = hn::Zero(d), sum1 = sum0;
  for (j = 0; j + 2 * lanes <= columns; j += 2 * lanes) {
    const TileV e0 = exp_not_positive(hn::Sub(hn::Load(d, scores + j), max));
    const TileV e1 = exp_not_positive(hn::Sub(hn::Load(d, scores + j + lanes), max));
    hn::Store(e0, d, scores + j);
    hn::Store(e1, d, scores + j + lanes);
    sum0 = hn::Add(sum0, e0);
    sum1 = hn::Add(sum1, e1);
  }
  if (j < columns) {
    const TileV e = exp_not_positive(hn::Sub(hn::Load(d, scores + j), max));
    hn::Store(e, d, scores + j);
    sum0 = hn::Add(sum0, e);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
}

// scores[j] = scale * query . key[j], keys as they lie.
void dot_scores(const AttentionShape& s, const float* query, const float* key, int64_t keys, float* scores) {
  float sums[4];
  for (int64_t j = 0; j < keys; j += 4) {
    const int64_t count = std::min<int64_t>(4, keys - j);
    dot_four(query, key + j * s.key_row, s.key_row, count, s.depth, sums);
    for (int64_t i = 0; i < count; ++i) scores[j + i] = s.scale * sums[i];
  }
}

// One row of the mask as floats: the number to add, or 1 where the score is filled.
void expand_mask(const AttentionShape& s, const void* mask, int64_t row, float* to) {
  if (s.mask == AttentionMask::kAdd) {
    const float* from = static_cast<const float*>(mask) + row * s.mask_row;
    for (int64_t j = 0; j < s.keys; ++j) to[j] = from[j * s.mask_col];
    return;
  }
  const auto* from = static_cast<const uint8_t*>(mask) + row * s.mask_row;
  const bool fills = s.mask == AttentionMask::kFill;
  for (int64_t j = 0; j < s.keys; ++j) to[j] = (from[j * s.mask_col] != 0) == fills ? 1.0f : 0.0f;
}

class Attention {
 public:
  Attention(const AttentionShape& shape, const AttentionHead& head, float* scratch)
      : s_(shape), head_(head), layout_(shape), scratch_(scratch) {
    reads_keys_ = s_.queries <= kFewQueries && s_.key_col == 1 && s_.query_col == 1;
    const bool is_whole = s_.value_depth % tile_lanes() == 0;
    reads_values_ = is_whole && s_.value_col == 1 && s_.queries < kQueriesToPack;
    writes_out_ = is_whole;
  }

  void pack() const {
    if (!reads_keys_) pack_panels(head_.key, s_.key_col, s_.key_row, s_.depth, s_.keys, scratch_);
    for (int64_t k = 0; !reads_values_ && k < s_.keys; k += kDepthBlock) {
      pack_panels(head_.value + k * s_.value_row, s_.value_row, s_.value_col, std::min(kDepthBlock, s_.keys - k),
                  s_.value_depth, scratch_ + layout_.values + k * whole_vectors(s_.value_depth));
    }
    if (s_.mask != AttentionMask::kNone && s_.mask_row == 0) expand_mask(s_, head_.mask, 0, scratch_ + layout_.mask);
  }

  void run(int64_t begin, int64_t end) const {
    // The keys that any of the rows sees.
    const int64_t keys = s_.is_causal ? std::min(s_.keys, end) : s_.keys;
    score(begin, end, keys);
    softmax_scores(begin, end, keys);
    accumulate_values(begin, end, keys);
  }

 private:
  float* scores() const { return scratch_ + layout_.scores; }

  void score(int64_t begin, int64_t end, int64_t keys) const {
    if (reads_keys_) {
      for (int64_t r = begin; r < end; ++r) {
        dot_scores(s_, head_.query + r * s_.query_row, head_.key, keys, scores() + (r - begin) * layout_.key_stride);
      }
      return;
    }
    // Whole panels, of which only the last may be narrower.
    const int64_t columns = std::min(s_.keys, round_up(keys, panel_columns()));
    multiply_panels(end - begin, columns, s_.depth, {head_.query + begin * s_.query_row, s_.query_row, s_.query_col},
                    {scratch_, s_.depth, TileRight::kPanelWidth}, {scores(), layout_.key_stride, &s_.scale, 0, false});
  }

  // Turns scores into weights, which are divided by their sum later.
  void softmax_scores(int64_t begin, int64_t end, int64_t keys) const {
    float* mask = scratch_ + layout_.mask;
    float* scales = scratch_ + layout_.sums;
    const int64_t columns = whole_vectors(keys);
    for (int64_t r = begin; r < end; ++r) {
      float* row = scores() + (r - begin) * layout_.key_stride;
      if (s_.mask != AttentionMask::kNone) {
        if (s_.mask_row != 0) expand_mask(s_, head_.mask, r, mask);
        mask_row(s_, mask, row, columns);
      }
      const int64_t seen = s_.is_causal ? std::min(keys, r + 1) : keys;
      std::fill(row + seen, row + columns, kMinusInfinity);
      scales[r - begin] = 1.0f / exponentials(row, columns, s_.is_safe);
    }
  }

  void accumulate_values(int64_t begin, int64_t end, int64_t keys) const {
    float* out = writes_out_ ? head_.out + begin * s_.out_row : scratch_ + layout_.out;
    const int64_t out_row = writes_out_ ? s_.out_row : layout_.value_stride;
    for (int64_t k = 0; k < keys; k += kDepthBlock) {
      const int64_t packed = std::min(kDepthBlock, s_.keys - k), depth = std::min(kDepthBlock, keys - k);
      const TileRight values = reads_values_ ? TileRight{head_.value + k * s_.value_row, 1, s_.value_row}
                                             : TileRight{scratch_ + layout_.values + k * whole_vectors(s_.value_depth),
                                                         packed, TileRight::kPanelWidth};
      multiply_panels(end - begin, s_.value_depth, depth, {scores() + k, layout_.key_stride, 1}, values,
                      {out, out_row, scratch_ + layout_.sums, 1, k > 0});
    }
    if (writes_out_) return;
    for (int64_t r = begin; r < end; ++r, out += out_row)
      std::copy(out, out + s_.value_depth, head_.out + r * s_.out_row);
  }

  const AttentionShape& s_;
  const AttentionHead& head_;
  const AttentionScratch layout_;
  float* scratch_;
  bool reads_keys_, reads_values_;  // read in place
  bool writes_out_;                 // else rows are copied here
};

}  // namespace

void attend(const AttentionShape& shape, const AttentionHead& head, int64_t begin, int64_t end, float* scratch,
            bool is_new_head) {
  const Attention attention(shape, head, scratch);
  if (is_new_head) attention.pack();
  attention.run(begin, end);
}

}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(attend);

int64_t attention_block_rows(const AttentionShape& shape) {
  const int64_t fit = kScoreFloats / std::max<int64_t>(1, shape.keys);
  return std::min(shape.queries, std::clamp<int64_t>(fit / 6 * 6, 12, 96));
}

int64_t attention_scratch(const AttentionShape& shape) { return AttentionScratch(shape).total; }

void attend_rows(const AttentionShape& shape, const AttentionHead& head, int64_t begin, int64_t end, float* scratch,
                 bool is_new_head) {
  HWY_DYNAMIC_DISPATCH(attend)(shape, head, begin, end, scratch, is_new_head);
}

}  // namespace tensord::kernels
#endif
