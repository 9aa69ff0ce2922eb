// The steps before and after the tiles of a quantized product: numbers are rounded to 8 bits, and sums become results.
// These are plain loops that the compiler vectorizes, compiled for each instruction set. Every operation rounds
// separately or is std::fma, so all instruction sets give the same bits.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/quantized/product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quantized/rows_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

// Integers with the order of the floats.
int32_t to_ordered(float x) {
  const auto bits = std::bit_cast<int32_t>(x);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}
float from_ordered(int32_t x) { return std::bit_cast<float>(x ^ ((x >> 31) & 0x7fffffff)); }

int32_t sum_at(const QuantizedEpilogue& f, int32_t sum, int64_t row, int64_t column) {
  // Wraps as the sums do; the final result is in range again.
  uint32_t out =
      static_cast<uint32_t>(sum) - static_cast<uint32_t>(f.zero_point) * static_cast<uint32_t>(f.column_sums[column]);
  if (f.weight_zero_points)
    out -= static_cast<uint32_t>(f.weight_zero_points[column]) * static_cast<uint32_t>(f.row_sums[row]);
  return static_cast<int32_t>(out);
}

void epilogue_float(const QuantizedEpilogue& f, const SumTile& tile) {
  for (int64_t r = 0; r < tile.rows; ++r) {
    const auto* sums = reinterpret_cast<const int32_t*>(tile.sums) + r * tile.stride;
    const int64_t row = tile.first_row + r, column = tile.first_column;
    float* out = f.out + row * f.out_stride + column;
    if (f.weight_zero_points) {
      for (int64_t c = 0; c < tile.columns; ++c) {
        const auto sum = static_cast<float>(sum_at(f, sums[c], row, column + c));
        const float x = std::fma(sum, f.scale * f.column_scales[column + c], f.bias[column + c]);
        out[c] = f.relu && !(x > 0) ? 0.0f : x;
      }
      continue;
    }
    const int32_t zero_point = f.zero_point;
    const int32_t* column_sums = f.column_sums + column;
    const float *scales = f.column_scales + column, *bias = f.bias + column;
    const float scale = f.scale;
    _Pragma("GCC ivdep") for (int64_t c = 0; c < tile.columns; ++c) {
      const uint32_t sum =
          static_cast<uint32_t>(sums[c]) - static_cast<uint32_t>(zero_point) * static_cast<uint32_t>(column_sums[c]);
      out[c] = std::fma(static_cast<float>(static_cast<int32_t>(sum)), scale * scales[c], bias[c]);
    }
    if (f.relu) {
      _Pragma("GCC ivdep") for (int64_t c = 0; c < tile.columns; ++c) out[c] = out[c] > 0 ? out[c] : 0.0f;
    }
  }
}

// Bytes may alias everything, so the loop's inputs are in locals and its results in a block.
void epilogue_bytes(const QuantizedEpilogue& f, const SumTile& tile) {
  constexpr int64_t kBlock = 64;
  const auto zero_point = static_cast<float>(f.out_zero_point), least = static_cast<float>(f.least),
             most = static_cast<float>(f.most);
  const auto input_zero = static_cast<uint32_t>(f.zero_point);
  for (int64_t r = 0; r < tile.rows; ++r) {
    const int64_t row = tile.first_row + r;
    const auto row_sum = f.weight_zero_points ? static_cast<uint32_t>(f.row_sums[row]) : 0u;
    for (int64_t first = 0; first < tile.columns; first += kBlock) {
      const int64_t width = std::min(kBlock, tile.columns - first), column = tile.first_column + first;
      const uint32_t* sums = tile.sums + r * tile.stride + first;
      const int32_t* column_sums = f.column_sums + column;
      const int32_t* weight_zero = f.weight_zero_points ? f.weight_zero_points + column : nullptr;
      const float *bias = f.scaled_bias + column, *multipliers = f.multipliers + column;
      int32_t centered[kBlock], rounded[kBlock];
      _Pragma("GCC ivdep") for (int64_t c = 0; c < width; ++c) centered[c] =
          static_cast<int32_t>(sums[c] - input_zero * static_cast<uint32_t>(column_sums[c]));
      for (int64_t c = 0; weight_zero && c < width; ++c)
        centered[c] =
            static_cast<int32_t>(static_cast<uint32_t>(centered[c]) - row_sum * static_cast<uint32_t>(weight_zero[c]));
      _Pragma("GCC ivdep") for (int64_t c = 0; c < width; ++c) {
        const float scaled = (static_cast<float>(centered[c]) + bias[c]) * multipliers[c];
        float x = std::nearbyint(scaled) + zero_point;
        x = x > least ? x : least;
        x = x < most ? x : most;
        rounded[c] = static_cast<int32_t>(x);
      }
      uint8_t* out = f.out8 + row * f.out_stride + column;
      _Pragma("GCC ivdep") for (int64_t c = 0; c < width; ++c) out[c] = static_cast<uint8_t>(rounded[c]);
    }
  }
}

}  // namespace

void extremes(const float* x, int64_t count, int32_t* least, int32_t* greatest) {
  int32_t low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t ordered = to_ordered(x[i]);
    low = std::min(low, ordered);
    high = std::max(high, ordered);
  }
  *least = low;
  *greatest = high;
}

void quantize_row(const RowQuantizer& quantizer, const float* x, int64_t k, uint8_t* out, int32_t* sum) {
  const float inverse = 1.0f / quantizer.scale;
  const auto zero_point = static_cast<float>(quantizer.zero_point);
  _Pragma("GCC ivdep") for (int64_t i = 0; i < k; ++i) {
    float y = std::nearbyint(x[i] * inverse) + zero_point;
    y = y > 0 ? y : 0.0f;
    y = y < 255 ? y : 255.0f;
    out[i] = static_cast<uint8_t>(static_cast<int32_t>(y));
  }
  if (!sum) return;
  int32_t total = 0;
  for (int64_t i = 0; i < k; ++i) total += out[i];
  *sum = total;
}

void finish(const QuantizedEpilogue& f, const SumTile& tile) {
  f.out ? epilogue_float(f, tile) : epilogue_bytes(f, tile);
}

void depthwise(const uint8_t* const* taps, size_t count, int32_t zero_point, const int8_t* weight,
               const int32_t* weight_zero_points, int64_t channels, int32_t* sums) {
  constexpr int64_t kBlock = 64;  // sums that stay in registers
  for (int64_t first = 0; first < channels; first += kBlock) {
    const int64_t width = std::min(kBlock, channels - first);
    int32_t block[kBlock] = {};
    for (size_t tap = 0; tap < count; ++tap) {
      if (!taps[tap]) continue;
      const uint8_t* x = taps[tap] + first;
      const int8_t* w = weight + static_cast<int64_t>(tap) * channels + first;
      if (weight_zero_points) {
        for (int64_t c = 0; c < width; ++c) block[c] += (x[c] - zero_point) * (w[c] - weight_zero_points[first + c]);
      } else if (width == kBlock) {
        _Pragma("GCC ivdep") for (int64_t c = 0; c < kBlock; ++c) block[c] += (x[c] - zero_point) * w[c];
      } else {
        _Pragma("GCC ivdep") for (int64_t c = 0; c < width; ++c) block[c] += (x[c] - zero_point) * w[c];
      }
    }
    std::copy_n(block, width, sums + first);
  }
}

bool is_ordered_finite(int32_t least, int32_t greatest) {
  return std::isfinite(from_ordered(least)) && std::isfinite(from_ordered(greatest));
}

Extremes to_extremes(int32_t least, int32_t greatest) {
  return {from_ordered(least), from_ordered(greatest), is_ordered_finite(least, greatest)};
}

}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/base/parallel.h"

namespace tensord::kernels {

HWY_EXPORT(extremes);
HWY_EXPORT(quantize_row);
HWY_EXPORT(finish);
HWY_EXPORT(to_extremes);
HWY_EXPORT(depthwise);

void finish_sums(const QuantizedEpilogue& f, const SumTile& tile) { HWY_DYNAMIC_DISPATCH(finish)(f, tile); }

void depthwise_sums(const std::vector<const uint8_t*>& taps, int32_t zero_point, const int8_t* weight,
                    const int32_t* weight_zero_points, int64_t channels, int32_t* sums) {
  HWY_DYNAMIC_DISPATCH(depthwise)(taps.data(), taps.size(), zero_point, weight, weight_zero_points, channels, sums);
}

Extremes extremes_of(const float* x, int64_t count) {
  constexpr int kMaxParts = 64;
  int32_t least[kMaxParts] = {}, greatest[kMaxParts] = {};
  const int parts = parallel_parts(count, 0.1, std::min(thread_budget(), kMaxParts));
  const auto find = &HWY_DYNAMIC_DISPATCH(extremes);
  parallel_run(parts, [&](int i) {
    const int64_t begin = count * i / parts, end = count * (i + 1) / parts;
    find(x + begin, end - begin, least + i, greatest + i);
  });
  return HWY_DYNAMIC_DISPATCH(to_extremes)(*std::min_element(least, least + parts),
                                           *std::max_element(greatest, greatest + parts));
}

void quantize_rows(const RowQuantizer& quantizer, const float* x, int64_t rows, int64_t k, uint32_t* out,
                   int64_t row_words, int32_t* row_sums) {
  const auto quantize = &HWY_DYNAMIC_DISPATCH(quantize_row);
  parallel_for_cost(rows, 0.15 * static_cast<double>(k), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      auto* row = reinterpret_cast<uint8_t*>(out + r * row_words);
      quantize(quantizer, x + r * k, k, row, row_sums ? row_sums + r : nullptr);
      std::memset(row + k, 0, static_cast<size_t>(row_words * 4 - k));
    }
  });
}

void quantize_bytes(const RowQuantizer& quantizer, const float* x, int64_t count, uint8_t* out) {
  const auto quantize = &HWY_DYNAMIC_DISPATCH(quantize_row);
  parallel_for_cost(count, 0.15, [&](int64_t begin, int64_t end) {
    quantize(quantizer, x + begin, end - begin, out + begin, nullptr);
  });
}

}  // namespace tensord::kernels
#endif
