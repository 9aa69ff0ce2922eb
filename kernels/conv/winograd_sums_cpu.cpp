// The gradient for a convolution's kernels by Winograd's algorithm: with results Y = A'[(G g G') * (B' d B)]A of
// kernels g and inputs d, it is G'[(A dY A') * (B' d B)]G, summed over all tiles before the last step.
#include "kernels/base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/winograd_sums_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/conv/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

using TileT = float;
#include "kernels/gemm/gemm_tile-inl.h"

using D = TileD;
using V = TileV;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));

#include "kernels/conv/winograd-inl.h"

constexpr int64_t kTile = 4, kSide = 6, kPositions = WinogradSums::kPositions;

// Writes the tile's gradients to `to`, whose positions are `step` floats apart.
void TransformGradients(const WinogradConv& conv, int64_t grad_step, const float* grad, const TilePlace& at, float* to,
                        int64_t step) {
  const D d;
  const int64_t channels = conv.out_channels;
  const float* pixels[kTile][kTile];
  for (int64_t i = 0; i < kTile; ++i) {
    for (int64_t j = 0; j < kTile; ++j) {
      const int64_t y = at.y + i, x = at.x + j;
      const bool is_inside = y < conv.out_h && x < conv.out_w;
      pixels[i][j] = is_inside ? grad + ((at.image * conv.out_h + y) * conv.out_w + x) * grad_step : conv.zeros;
    }
  }
  for (int64_t c = 0; c < channels; c += kLanes) {
    V columns[kSide][kTile];
#pragma GCC unroll 4
    for (int j = 0; j < kTile; ++j) {
      V x[kTile], y[kSide];
#pragma GCC unroll 4
      for (int i = 0; i < kTile; ++i) x[i] = hn::LoadU(d, pixels[i][j] + c);
      line_of_gradients(x, y);
#pragma GCC unroll 6
      for (int i = 0; i < kSide; ++i) columns[i][j] = y[i];
    }
#pragma GCC unroll 6
    for (int i = 0; i < kSide; ++i) {
      V y[kSide];
      line_of_gradients(columns[i], y);
#pragma GCC unroll 6
      for (int j = 0; j < kSide; ++j) hn::StoreU(y[j], d, to + (i * kSide + j) * step + c);
    }
  }
}

void Transform(const WinogradSums& sums, const float* src, const float* grad, int64_t first, int64_t begin, int64_t end,
               float* inputs, float* gradients) {
  const WinogradConv& conv = sums.conv;
  for (int64_t t = begin; t < end; ++t) {
    const TilePlace at = FindTile(conv, first + t);
    TransformInput<kTile>(conv, src, at, inputs + t * conv.in_channels, sums.tiles * conv.in_channels);
    TransformGradients(conv, sums.grad_step, grad, at, gradients + t * conv.out_channels,
                       sums.tiles * conv.out_channels);
  }
}

void AddSums(const WinogradSums& sums, const float* inputs, const float* gradients, int64_t count, bool accumulates,
             int64_t begin, int64_t end, float* to) {
  const int64_t in = sums.conv.in_channels, out = sums.conv.out_channels;
  constexpr float kOne = 1;
  for (int64_t p = begin; p < end; ++p) {
    multiply_panels(in, out, count, {inputs + p * sums.tiles * in, 1, in}, {gradients + p * sums.tiles * out, 1, out},
                    {to + p * in * out, out, &kOne, 0, accumulates});
  }
}

// One line of G', from the points back to the taps.
HWY_INLINE void LineOfTaps(const V (&x)[kSide], V (&y)[3]) {
  const D d;
#pragma GCC unroll 3
  for (int t = 0; t < 3; ++t) {
    y[t] = hn::Mul(x[0], hn::Set(d, kKernelFour[0][t]));
#pragma GCC unroll 6
    for (int i = 1; i < kSide; ++i) y[t] = hn::MulAdd(x[i], hn::Set(d, kKernelFour[i][t]), y[t]);
  }
}

// The taps of one input and kLanes outputs.
HWY_INLINE void TapsOf(const float* from, int64_t position_step, float (&taps)[9][kLanes]) {
  const D d;
  V half[3][kSide];
#pragma GCC unroll 6
  for (int j = 0; j < kSide; ++j) {
    V x[kSide], y[3];
#pragma GCC unroll 6
    for (int k = 0; k < kSide; ++k) x[k] = hn::LoadU(d, from + (k * kSide + j) * position_step);
    LineOfTaps(x, y);
#pragma GCC unroll 3
    for (int t = 0; t < 3; ++t) half[t][j] = y[t];
  }
  for (int t = 0; t < 3; ++t) {
    V y[3];
    LineOfTaps(half[t], y);
    for (int u = 0; u < 3; ++u) hn::StoreU(y[u], d, taps[t * 3 + u]);
  }
}

// A block of inputs by kLanes outputs at a time, so that whole cache lines are written.
void Epilogue(const WinogradSums& sums, const float* from, int64_t begin, int64_t end, float* out, int64_t out_step,
              int64_t in_step, int64_t tap_step) {
  constexpr int64_t kBlock = 16;
  const int64_t in = sums.conv.in_channels, channels = sums.conv.out_channels;
  for (int64_t first = begin; first < end; first += kBlock) {
    const int64_t count = std::min(kBlock, end - first);
    for (int64_t c = 0; c < channels; c += kLanes) {
      float taps[kBlock][9][kLanes];
      for (int64_t i = 0; i < count; ++i) TapsOf(from + (first + i) * channels + c, in * channels, taps[i]);
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        float* to = out + (c + lane) * out_step + first * in_step;
        if (tap_step == 1) {
          for (int64_t i = 0; i < count; ++i) {
            for (int64_t t = 0; t < 9; ++t) to[i * in_step + t] = taps[i][t][lane];
          }
        } else {
          for (int64_t t = 0; t < 9; ++t) {
            for (int64_t i = 0; i < count; ++i) to[i * in_step + t * tap_step] = taps[i][t][lane];
          }
        }
      }
    }
  }
}

}  // namespace

void RunTransform(const WinogradSums& sums, const float* src, const float* grad, int64_t first, int64_t begin,
                  int64_t end, float* inputs, float* gradients) {
  Transform(sums, src, grad, first, begin, end, inputs, gradients);
}
void RunAdd(const WinogradSums& sums, const float* inputs, const float* gradients, int64_t count, bool accumulates,
            int64_t begin, int64_t end, float* to) {
  AddSums(sums, inputs, gradients, count, accumulates, begin, end, to);
}
void RunEpilogue(const WinogradSums& sums, const float* from, int64_t begin, int64_t end, float* out, int64_t out_step,
                 int64_t in_step, int64_t tap_step) {
  Epilogue(sums, from, begin, end, out, out_step, in_step, tap_step);
}

}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(RunTransform);
HWY_EXPORT(RunAdd);
HWY_EXPORT(RunEpilogue);

void transform_winograd_sums(const WinogradSums& sums, const float* src, const float* grad, int64_t first,
                             int64_t begin, int64_t end, float* inputs, float* gradients) {
  HWY_DYNAMIC_DISPATCH(RunTransform)(sums, src, grad, first, begin, end, inputs, gradients);
}
void add_winograd_sums(const WinogradSums& sums, const float* inputs, const float* gradients, int64_t count,
                       bool accumulates, int64_t begin, int64_t end, float* to) {
  HWY_DYNAMIC_DISPATCH(RunAdd)(sums, inputs, gradients, count, accumulates, begin, end, to);
}
void finish_winograd_sums(const WinogradSums& sums, const float* from, int64_t begin, int64_t end, float* out,
                          int64_t out_step, int64_t in_step, int64_t tap_step) {
  HWY_DYNAMIC_DISPATCH(RunEpilogue)(sums, from, begin, end, out, out_step, in_step, tap_step);
}

}  // namespace tensord::kernels
#endif
