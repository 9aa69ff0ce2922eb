// Winograd's convolution F(m×m, 3×3), m = 2 or 4: tiles of (m+2)² inputs are transformed, multiplied at each of their
// positions with a transformed kernel, and transformed to m² outputs, which takes 2.25 or 4 times fewer
// multiplications. A block of tiles goes through all three steps while it is in the cache. The largest errors are
// about 1.5e-6 (m = 4) and 6e-7 (m = 2) of the largest output, against 3e-7 of the plain sum.
#include "core/base/cancellation.h"
#include "kernels/base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/winograd_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "kernels/conv/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

#include "kernels/conv/tile-inl.h"

#include "kernels/conv/winograd-inl.h"

template <int kTile>
void TransformOutput(const WinogradConv& conv, const float* from, int64_t step, const TilePlace& at, const float* other,
                     float* dst) {
  constexpr int kSide = kTile + 2;
  const D d;
  const int64_t channels = conv.out_channels;
  const int64_t first = ((at.image * conv.out_h + at.y) * conv.out_w + at.x) * channels;
  const int64_t rows = std::min<int64_t>(kTile, conv.out_h - at.y),
                columns = std::min<int64_t>(kTile, conv.out_w - at.x);
  const V low = hn::Set(d, conv.finish.low), high = hn::Set(d, conv.finish.high);
  for (int64_t c = 0; c < channels; c += kLanes) {
    V lines[kTile][kSide];
#pragma GCC unroll 6
    for (int j = 0; j < kSide; ++j) {
      V x[kSide], y[kTile];
#pragma GCC unroll 6
      for (int i = 0; i < kSide; ++i) x[i] = hn::LoadU(d, from + (i * kSide + j) * step + c);
      Lines<kTile>::output(x, y);
#pragma GCC unroll 4
      for (int i = 0; i < kTile; ++i) lines[i][j] = y[i];
    }
    const V bias = hn::LoadU(d, conv.bias + c);
#pragma GCC unroll 4
    for (int i = 0; i < kTile; ++i) {
      V y[kTile];
      Lines<kTile>::output(lines[i], y);
      if (i >= rows) continue;
#pragma GCC unroll 4
      for (int j = 0; j < kTile; ++j) {
        if (j >= columns) continue;
        const int64_t to = first + (i * conv.out_w + j) * channels + c;
        V x = hn::Add(y[j], bias);
        if (other) x = hn::Add(x, hn::LoadU(d, other + to));
        hn::StoreU(clamp_of(x, low, high), d, dst + to);
      }
    }
  }
  if (conv.finish.count == 0) return;
  for (int64_t i = 0; i < rows; ++i)
    finish_block(conv.finish, dst + first + i * conv.out_w * channels, 1, 0, columns * channels);
}

// m[tile][out] = v[tile][in] @ weights at one position.
void MultiplyPosition(const WinogradConv& conv, const float* weights, const float* v, float* m, int64_t tiles) {
  constexpr int64_t kPanel = kTileVectors * kLanes;
  constexpr int64_t kNoOffset = 0;
  TileRun run{};
  run.taps = &kNoOffset;
  run.tap_count = 1;
  run.depth = conv.in_channels;
  run.a_step = conv.in_channels;
  run.c_step = conv.out_channels;
  run.low = -std::numeric_limits<float>::infinity();
  run.high = std::numeric_limits<float>::infinity();
  for (int64_t n = 0; n < conv.out_channels; n += kPanel) {
    run.b = weights + n * conv.in_channels;
    run.columns = std::min(kPanel, conv.out_channels - n);
    for (int64_t t = 0; t < tiles;) {
      const bool is_pair = t + 2 * kGroupPixels <= tiles;
      const int64_t pixels = std::min<int64_t>(kGroupPixels, tiles - t);
      for (int g = 0; g < (is_pair ? 2 : 1); ++g, t += pixels) {
        run.a[g] = v + t * conv.in_channels;
        run.c[g] = m + t * conv.out_channels + n;
      }
      run_tile(is_pair, pixels, run);
    }
  }
}

template <int kTile>
void RunTiles(const WinogradConv& conv, const float* src, const float* other, float* dst, float* scratch, int64_t begin,
              int64_t end) {
  constexpr int64_t kPositions = (kTile + 2) * (kTile + 2);
  const int64_t max = conv.block_tiles(), in = conv.in_channels, out = conv.out_channels;
  const int64_t blocks = (end - begin + max - 1) / max;
  float* const v = scratch;
  float* const m = scratch + kPositions * max * in;
  for (int64_t b = 0; b < blocks; ++b) {
    check_work_cancelled();
    const int64_t first = begin + std::min(end - begin, b * max), tiles = std::min(max, end - first);
    for (int64_t t = 0; t < tiles; ++t)
      TransformInput<kTile>(conv, src, FindTile(conv, first + t), v + t * in, max * in);
    for (int64_t p = 0; p < kPositions; ++p)
      MultiplyPosition(conv, conv.weights + p * in * out, v + p * max * in, m + p * max * out, tiles);
    for (int64_t t = 0; t < tiles; ++t)
      TransformOutput<kTile>(conv, m + t * out, max * out, FindTile(conv, first + t), other, dst);
  }
}

constexpr float kKernelTwo[4][3] = {{1, 0, 0}, {0.5f, 0.5f, 0.5f}, {0.5f, -0.5f, 0.5f}, {0, 0, 1}};

// The kernels of a panel's channels are side by side, so that the loops over n are vector code.
template <int kTile>
void TransformKernels(const float (&by)[kTile + 2][3], const ConvWeightSource& source, float* to, int64_t first_panel,
                      int64_t last_panel) {
  constexpr int kSide = kTile + 2;
  constexpr int64_t kPanel = kTileVectors * kLanes, kTaps = 9;
  const int64_t in = source.in, out = source.out;
  for (int64_t first = first_panel * kPanel; first < std::min(out, last_panel * kPanel); first += kPanel) {
    const int64_t width = std::min(kPanel, out - first);
    for (int64_t c = 0; c < in; ++c) {
      HWY_ALIGN float plain[kTaps][kPanel] = {};
      HWY_ALIGN float half[kSide][3][kPanel];
      for (int64_t n = 0; n < width; ++n) {
        const float scale = source.scale ? source.scale[first + n] : 1.0f;
        const int64_t kernel = source.is_turned ? c * out + first + n : (first + n) * in + c;
        const float* from = source.data + kernel * kTaps;
        for (int64_t t = 0; t < kTaps; ++t) plain[t][n] = from[source.is_turned ? kTaps - 1 - t : t] * scale;
      }
      for (int r = 0; r < kSide; ++r) {
        for (int t = 0; t < 3; ++t) {
          for (int64_t n = 0; n < kPanel; ++n)
            half[r][t][n] = by[r][0] * plain[t][n] + by[r][1] * plain[3 + t][n] + by[r][2] * plain[6 + t][n];
        }
      }
      for (int r = 0; r < kSide; ++r) {
        for (int t = 0; t < kSide; ++t) {
          HWY_ALIGN float whole[kPanel];
          for (int64_t n = 0; n < kPanel; ++n)
            whole[n] = by[t][0] * half[r][0][n] + by[t][1] * half[r][1][n] + by[t][2] * half[r][2][n];
          std::memcpy(to + (r * kSide + t) * in * out + first * in + c * width, whole,
                      static_cast<size_t>(width) * sizeof(float));
        }
      }
    }
  }
}

void PackWinograd(int64_t tile, const ConvWeightSource& source, float* to, int64_t first_panel, int64_t last_panel) {
  if (tile == 4) return TransformKernels<4>(kKernelFour, source, to, first_panel, last_panel);
  TransformKernels<2>(kKernelTwo, source, to, first_panel, last_panel);
}

void RunWinograd(const WinogradConv& conv, const float* src, const float* other, float* dst, float* scratch,
                 int64_t first, int64_t last) {
  if (conv.tile == 4) return RunTiles<4>(conv, src, other, dst, scratch, first, last);
  RunTiles<2>(conv, src, other, dst, scratch, first, last);
}

}  // namespace
}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(RunWinograd);
HWY_EXPORT(PackWinograd);

int64_t WinogradConv::block_tiles() const {
  // Transformed inputs and products stay in the L2 cache; whole tiles of 14 rows.
  constexpr int64_t kFloats = 128 * 1024, kRows = 14;
  const int64_t fit = kFloats / (side() * side() * (in_channels + out_channels));
  return std::clamp<int64_t>(fit / kRows * kRows, kRows, 4 * kRows);
}

void run_winograd_conv(const WinogradConv& conv, const float* src, const float* other, float* dst, float* scratch,
                       int64_t first_tile, int64_t last_tile) {
  HWY_DYNAMIC_DISPATCH(RunWinograd)(conv, src, other, dst, scratch, first_tile, last_tile);
}

void pack_winograd_panels(int64_t tile, const ConvWeightSource& source, float* to, int64_t first_panel,
                          int64_t last_panel) {
  HWY_DYNAMIC_DISPATCH(PackWinograd)(tile, source, to, first_panel, last_panel);
}

}  // namespace tensord::kernels
#endif
