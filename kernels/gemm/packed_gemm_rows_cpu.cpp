// The steps before and after the tiles of a packed product: rows become its words, sums become results. These are plain
// loops that the compiler vectorizes, compiled for each instruction set.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "kernels/base/half_rows.h"
#include "kernels/base/math.h"
#include "kernels/gemm/packed_gemm_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/packed_gemm_rows_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

using Kind = EpilogueStep::Kind;
// Handles a panel's columns at once: loops of fixed length become straight vector code, in which chains of operations
// overlap.
constexpr int64_t kBlock = kTileVectors * std::max<int64_t>(HWY_LANES(float), 4);

template <Kind kind>
TENSORD_INLINE float apply(float x, float alpha, float beta) {
  namespace f = formula;
  if constexpr (kind == Kind::kRelu) return x > 0 ? x : x * alpha;
  if constexpr (kind == Kind::kClip) return f::clamp(x, alpha, beta);
  if constexpr (kind == Kind::kLinear) return x * alpha + beta;
  if constexpr (kind == Kind::kSigmoid) return f::sigmoid(x);
  if constexpr (kind == Kind::kTanh) return f::tanh(x);
  if constexpr (kind == Kind::kGelu) return f::gelu(x);
  if constexpr (kind == Kind::kGeluTanh) return f::gelu_tanh(x);
  if constexpr (kind == Kind::kSilu) return x / (1.0f + f::exp(-x));
  if constexpr (kind == Kind::kHardSwish) return x * (f::clamp(x + 3.0f, 0.0f, 6.0f) * (1.0f / 6));
  if constexpr (kind == Kind::kHardSigmoid) return f::clamp(x + 3.0f, 0.0f, 6.0f) * (1.0f / 6);
  if constexpr (kind == Kind::kElu) return x > 0 ? x : f::expm1(x) * alpha;
  return x;
}

// One step over the tile. The first one also adds the bias; a sum with another tensor reads that tensor's rows.
struct StepRun {
  const float* in;
  int64_t in_stride;
  float* out;
  int64_t out_stride;
  int64_t rows, columns;
  const float* bias;
  const EpilogueRun* finish;
  float alpha, beta;
};

template <Kind kind, bool kBias>
TENSORD_INLINE void run_columns(const float* in, const float* bias, const float* other, float* out, int64_t begin,
                                int64_t end, float alpha, float beta) {
  _Pragma("GCC ivdep") for (int64_t c = begin; c < end; ++c) {
    float x = in[c];
    if constexpr (kBias) x += bias[c];
    if constexpr (kind == Kind::kAdd)
      out[c] = x + other[c];
    else
      out[c] = apply<kind>(x, alpha, beta);
  }
}

template <Kind kind, bool kBias>
void run_step(const StepRun& run) {
  const int64_t whole = run.columns / kBlock * kBlock;
  for (int64_t r = 0; r < run.rows; ++r) {
    const float* in = run.in + r * run.in_stride;
    const float* other = nullptr;
    if constexpr (kind == Kind::kAdd)
      other = run.finish->other + (run.finish->first_row + r) % run.finish->other_rows * run.finish->other_stride;
    float* out = run.out + r * run.out_stride;
    for (int64_t c = 0; c < whole; c += kBlock)
      run_columns<kind, kBias>(in + c, run.bias + c, other + (kind == Kind::kAdd ? c : 0), out + c, 0, kBlock,
                               run.alpha, run.beta);
    run_columns<kind, kBias>(in, run.bias, other, out, whole, run.columns, run.alpha, run.beta);
  }
}

template <bool kBias>
void dispatch_step(Kind kind, const StepRun& run) {
  switch (kind) {
    case Kind::kRelu:
      // max(x, 0), which differs from x * 0 where x is infinite.
      if (run.alpha != 0) return run_step<Kind::kRelu, kBias>(run);
      return run_step<Kind::kClip, kBias>({run.in, run.in_stride, run.out, run.out_stride, run.rows, run.columns,
                                           run.bias, run.finish, 0, std::numeric_limits<float>::infinity()});
    case Kind::kClip: return run_step<Kind::kClip, kBias>(run);
    case Kind::kLinear: return run_step<Kind::kLinear, kBias>(run);
    case Kind::kSigmoid: return run_step<Kind::kSigmoid, kBias>(run);
    case Kind::kTanh: return run_step<Kind::kTanh, kBias>(run);
    case Kind::kGelu: return run_step<Kind::kGelu, kBias>(run);
    case Kind::kGeluTanh: return run_step<Kind::kGeluTanh, kBias>(run);
    case Kind::kSilu: return run_step<Kind::kSilu, kBias>(run);
    case Kind::kHardSwish: return run_step<Kind::kHardSwish, kBias>(run);
    case Kind::kHardSigmoid: return run_step<Kind::kHardSigmoid, kBias>(run);
    case Kind::kElu: return run_step<Kind::kElu, kBias>(run);
    case Kind::kAdd: return run_step<Kind::kAdd, kBias>(run);
  }
}

void dequantize(const EpilogueRun& run) {
  for (int64_t r = 0; r < run.rows; ++r) {
    float* row = run.tile + r * run.tile_stride;
    const float by = run.row_scale[r];
    _Pragma("GCC ivdep") for (int64_t c = 0; c < run.columns; ++c) {
      const int32_t sum = std::bit_cast<int32_t>(row[c]) - run.column_offset[c];
      row[c] = static_cast<float>(sum) * (by * run.column_scale[c]);
    }
  }
}

void to_bf16(const float* in, uint16_t* out, int64_t k) {
  _Pragma("GCC ivdep") for (int64_t i = 0; i < k; ++i) {
    const uint32_t x = std::bit_cast<uint32_t>(in[i]);
    const uint32_t rounded = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;
    out[i] = static_cast<uint16_t>((x & 0x7fffffffu) > 0x7f800000u ? (x >> 16) | 0x40u : rounded);
  }
}

// Returns the scale.
float to_uint8(const float* in, uint8_t* out, int64_t k) {
  // The bits of magnitudes have the order of the magnitudes.
  uint32_t max = 0;
  for (int64_t i = 0; i < k; ++i) max = std::max(max, std::bit_cast<uint32_t>(in[i]) & 0x7fffffffu);
  const bool is_finite = max < 0x7f800000u;
  const float magnitude = std::bit_cast<float>(max), by = is_finite && magnitude > 1e-37f ? 127.0f / magnitude : 0.0f;
  // 1.5 * 2^23 + 128: the sum's low byte is the rounded product plus 128.
  constexpr float kMagic = 12582912.0f + 128.0f;
  _Pragma("GCC ivdep") for (int64_t i = 0; i < k; ++i) {
    const float x = is_finite ? in[i] : 0.0f;
    out[i] = static_cast<uint8_t>(std::bit_cast<uint32_t>(x * by + kMagic));
  }
  return is_finite ? magnitude / 127.0f : std::numeric_limits<float>::quiet_NaN();
}

}  // namespace

// One row of k contiguous numbers.
void load_row(WordType type, const float* in, int64_t k, uint32_t* out, float* scale) {
  switch (type) {
    case WordType::kF32: std::memcpy(out, in, static_cast<size_t>(k) * 4); break;
    case WordType::kBf16:
      out[(k - 1) / 2] = 0;
      to_bf16(in, reinterpret_cast<uint16_t*>(out), k);
      break;
    case WordType::kF16:
      out[(k - 1) / 2] = 0;
      narrow_row(in, reinterpret_cast<Half*>(out), k);
      break;
    case WordType::kInt8:
      out[(k - 1) / 4] = 0;
      *scale = to_uint8(in, reinterpret_cast<uint8_t*>(out), k);
      break;
  }
}

void finish(const EpilogueRun* run) {
  if (run->column_scale) dequantize(*run);
  const float* in = run->tile;
  int64_t in_stride = run->tile_stride;
  for (int64_t i = 0; i < run->step_count; ++i) {
    const EpilogueStep& step = run->steps[i];
    const bool is_last = i + 1 == run->step_count;
    const StepRun one{in,
                      in_stride,
                      is_last ? run->out : run->tile,
                      is_last ? run->out_stride : run->tile_stride,
                      run->rows,
                      run->columns,
                      run->bias,
                      run,
                      step.alpha,
                      step.beta};
    i == 0 ? dispatch_step<true>(step.kind, one) : dispatch_step<false>(step.kind, one);
  }
}

}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(load_row);
HWY_EXPORT(finish);

void finish_tile(const EpilogueRun& run) { HWY_DYNAMIC_DISPATCH(finish)(&run); }

namespace {

// Rows of any column stride. Goes column by column, since neighboring rows may be what is contiguous.
void gather(const RowSource& source, int64_t begin, int64_t rows, int64_t k, float* out, int64_t stride) {
  const float* from[kGatherRows];
  for (int64_t r = 0; r < rows; ++r) from[r] = source.row(begin + r);
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t r = 0; r < rows; ++r) out[r * stride + i] = from[r][i * source.column_stride];
  }
}

}  // namespace

void load_rows(WordType type, const RowSource& source, int64_t begin, int64_t end, int64_t k, uint32_t* out,
               int64_t stride, float* scales, float* space) {
  const auto load = &HWY_DYNAMIC_DISPATCH(load_row);
  if (source.column_stride == 1) {
    for (int64_t r = begin; r < end; ++r)
      load(type, source.row(r), k, out + (r - begin) * stride, scales + (r - begin));
    return;
  }
  for (int64_t first = begin; first < end; first += kGatherRows) {
    const int64_t rows = std::min(kGatherRows, end - first);
    uint32_t* target = out + (first - begin) * stride;
    if (type == WordType::kF32) {
      gather(source, first, rows, k, reinterpret_cast<float*>(target), stride);
      continue;
    }
    gather(source, first, rows, k, space, k);
    for (int64_t r = 0; r < rows; ++r) load(type, space + r * k, k, target + r * stride, scales + (first - begin) + r);
  }
}

}  // namespace tensord::kernels
#endif
