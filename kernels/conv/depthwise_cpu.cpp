// Depthwise convolution: a few neighboring pixels of a row at once, one vector of channels at a time. Each input
// element is read once for each kernel row.
#include "kernels/base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/depthwise_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "kernels/conv/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

#include "kernels/conv/epilogue-inl.h"

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kRowPixels = 7;
#else
constexpr int kRowPixels = 4;
#endif

// kPixels results of one output row, from column `first` on.
template <int kKernel, int kStride, int kPixels>
struct DepthwiseTile {
  static constexpr int kColumns = (kPixels - 1) * kStride + kKernel;

  static HWY_INLINE void multiply(const DepthwiseConv& conv, const float* const (&rows)[kKernel][kColumns], int first,
                                  int last, int64_t c, float* dst) {
    const D d;
    V sums[kPixels];
#pragma GCC unroll 8
    for (int t = 0; t < kPixels; ++t) sums[t] = hn::LoadU(d, conv.bias + c);
    for (int y = first; y < last; ++y) {
      V pixels[kColumns];
#pragma GCC unroll 32
      for (int j = 0; j < kColumns; ++j) pixels[j] = hn::LoadU(d, rows[y][j] + c);
#pragma GCC unroll 8
      for (int x = 0; x < kKernel; ++x) {
        const V weight = hn::LoadU(d, conv.weights + (y * kKernel + x) * conv.channels + c);
#pragma GCC unroll 8
        for (int t = 0; t < kPixels; ++t) sums[t] = hn::MulAdd(weight, pixels[t * kStride + x], sums[t]);
      }
    }
    const V low = hn::Set(d, conv.finish.low), high = hn::Set(d, conv.finish.high);
#pragma GCC unroll 8
    for (int t = 0; t < kPixels; ++t) hn::StoreU(clamp_of(sums[t], low, high), d, dst + t * conv.channels + c);
  }

  // `line` is the first input row under the kernel and `column` the first input column; both may be outside of the
  // image.
  static void run(const DepthwiseConv& conv, const float* image, int64_t line, int64_t column, float* dst) {
    const float* rows[kKernel][kColumns];
    const auto first = static_cast<int>(std::clamp<int64_t>(-line, 0, kKernel));
    const auto last = static_cast<int>(std::clamp<int64_t>(conv.in_h - line, 0, kKernel));
    for (int y = first; y < last; ++y) {
      const float* row = image + (line + y) * conv.in_w * conv.channels;
      for (int j = 0; j < kColumns; ++j) {
        const int64_t x = column + j;
        rows[y][j] = x >= 0 && x < conv.in_w ? row + x * conv.channels : conv.zeros;
      }
    }
    int64_t c = 0;
    for (; c + kLanes <= conv.channels; c += kLanes) multiply(conv, rows, first, last, c, dst);
    // The last, partial vector overlaps the one before it.
    if (c < conv.channels) multiply(conv, rows, first, last, conv.channels - kLanes, dst);
    if (conv.finish.count > 0) finish_block(conv.finish, dst, 1, 0, kPixels * conv.channels);
  }
};

template <int kKernel, int kStride>
void RunRows(const DepthwiseConv& conv, const float* src, float* dst, int64_t first_row, int64_t last_row) {
  for (int64_t row = first_row; row < last_row; ++row) {
    const float* image = src + row / conv.out_h * conv.in_h * conv.in_w * conv.channels;
    const int64_t line = row % conv.out_h * kStride - conv.pad_h;
    float* to = dst + row * conv.out_w * conv.channels;
    if (conv.out_w < kRowPixels) {
      for (int64_t x = 0; x < conv.out_w; ++x)
        DepthwiseTile<kKernel, kStride, 1>::run(conv, image, line, x * kStride - conv.pad_w, to + x * conv.channels);
      continue;
    }
    for (int64_t x = 0; x < conv.out_w; x += kRowPixels) {
      const int64_t first = std::min(x, conv.out_w - kRowPixels);  // the last tile may compute some pixels again
      DepthwiseTile<kKernel, kStride, kRowPixels>::run(conv, image, line, first * kStride - conv.pad_w,
                                                       to + first * conv.channels);
    }
  }
}

int64_t LeastChannels() { return kLanes; }

void RunDepthwise(const DepthwiseConv& conv, const float* src, float* dst, int64_t first_row, int64_t last_row) {
  if (conv.kernel == 3)
    return conv.stride == 1 ? RunRows<3, 1>(conv, src, dst, first_row, last_row)
                            : RunRows<3, 2>(conv, src, dst, first_row, last_row);
  if (conv.kernel == 5)
    return conv.stride == 1 ? RunRows<5, 1>(conv, src, dst, first_row, last_row)
                            : RunRows<5, 2>(conv, src, dst, first_row, last_row);
  RunRows<7, 1>(conv, src, dst, first_row, last_row);
}

}  // namespace
}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(LeastChannels);
HWY_EXPORT(RunDepthwise);

bool covers_depthwise(int64_t kernel, int64_t stride, int64_t channels) {
  const bool is_known = ((kernel == 3 || kernel == 5) && (stride == 1 || stride == 2)) || (kernel == 7 && stride == 1);
  return is_known && channels >= HWY_DYNAMIC_DISPATCH(LeastChannels)();
}

void run_depthwise_conv(const DepthwiseConv& conv, const float* src, float* dst, int64_t first_row, int64_t last_row) {
  HWY_DYNAMIC_DISPATCH(RunDepthwise)(conv, src, dst, first_row, last_row);
}

}  // namespace tensord::kernels
#endif
