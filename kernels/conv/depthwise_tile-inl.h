// Included inside HWY_NAMESPACE by depthwise_cpu.cpp, once for each dtype of pixels. `Pixels` loads them and stores
// results.

// kPixels results of one output row, from column `first` on.
template <class Pixels, int kKernel, int kStride, int kPixels>
struct DepthwiseTile {
  using T = typename Pixels::T;
  static constexpr int kColumns = (kPixels - 1) * kStride + kKernel;

  static HWY_INLINE void multiply(const Pixels& pixels, const T* const (&rows)[kKernel][kColumns], int first, int last,
                                  int64_t c, T* dst) {
    const D d;
    const DepthwiseConv& conv = pixels.conv;
    V sums[kPixels];
#pragma GCC unroll 8
    for (int t = 0; t < kPixels; ++t) sums[t] = hn::LoadU(d, conv.bias + c);
    for (int y = first; y < last; ++y) {
      V row[kColumns];
#pragma GCC unroll 32
      for (int j = 0; j < kColumns; ++j) row[j] = Pixels::load(rows[y][j] + c);
#pragma GCC unroll 8
      for (int x = 0; x < kKernel; ++x) {
        const V weight = hn::LoadU(d, conv.weights + (y * kKernel + x) * conv.channels + c);
#pragma GCC unroll 8
        for (int t = 0; t < kPixels; ++t) sums[t] = hn::MulAdd(weight, row[t * kStride + x], sums[t]);
      }
    }
    pixels.store(sums, c, dst);
  }

  // `line` is the first input row under the kernel and `column` the first input column; both may be outside of the
  // image.
  static void run(const Pixels& pixels, const T* image, int64_t line, int64_t column, T* dst) {
    const DepthwiseConv& conv = pixels.conv;
    const T* rows[kKernel][kColumns];
    const auto first = static_cast<int>(std::clamp<int64_t>(-line, 0, kKernel));
    const auto last = static_cast<int>(std::clamp<int64_t>(conv.in_h - line, 0, kKernel));
    for (int y = first; y < last; ++y) {
      const T* row = image + (line + y) * conv.in_w * conv.channels;
      for (int j = 0; j < kColumns; ++j) {
        const int64_t x = column + j;
        rows[y][j] = x >= 0 && x < conv.in_w ? row + x * conv.channels : reinterpret_cast<const T*>(conv.zeros);
      }
    }
    int64_t c = 0;
    for (; c + kLanes <= conv.channels; c += kLanes) multiply(pixels, rows, first, last, c, dst);
    // The last, partial vector overlaps the one before it.
    if (c < conv.channels) multiply(pixels, rows, first, last, conv.channels - kLanes, dst);
    pixels.finish(dst, kPixels * conv.channels);
  }
};

// Rows are counted over all images.
template <int kKernel, int kStride, class Pixels, class T>
void run_rows(const Pixels& pixels, const T* src, T* dst, std::array<int64_t, 2> range) {
  const DepthwiseConv& conv = pixels.conv;
  for (int64_t row = range[0]; row < range[1]; ++row) {
    const T* image = src + row / conv.out_h * conv.in_h * conv.in_w * conv.channels;
    const int64_t line = row % conv.out_h * kStride - conv.pad_h;
    T* to = dst + row * conv.out_w * conv.channels;
    if (conv.out_w < kRowPixels) {
      for (int64_t x = 0; x < conv.out_w; ++x)
        DepthwiseTile<Pixels, kKernel, kStride, 1>::run(pixels, image, line, x * kStride - conv.pad_w,
                                                        to + x * conv.channels);
      continue;
    }
    for (int64_t x = 0; x < conv.out_w; x += kRowPixels) {
      const int64_t first = std::min(x, conv.out_w - kRowPixels);  // the last tile may compute some pixels again
      DepthwiseTile<Pixels, kKernel, kStride, kRowPixels>::run(pixels, image, line, first * kStride - conv.pad_w,
                                                               to + first * conv.channels);
    }
  }
}

template <class Pixels, class T>
void run_all(const Pixels& pixels, const T* src, T* dst, std::array<int64_t, 2> rows) {
  const int64_t kernel = pixels.conv.kernel, stride = pixels.conv.stride;
  if (kernel == 7) return run_rows<7, 1>(pixels, src, dst, rows);
  if (kernel == 5) return stride == 1 ? run_rows<5, 1>(pixels, src, dst, rows) : run_rows<5, 2>(pixels, src, dst, rows);
  return stride == 1 ? run_rows<3, 1>(pixels, src, dst, rows) : run_rows<3, 2>(pixels, src, dst, rows);
}

// Results in bfloat16, each step rounded as a call of its own would be.
template <class Rounding>
struct HalfPixels {
  using T = BFloat16;
  const DepthwiseConv& conv;
  const HalfEpilogue& steps;

  static HWY_INLINE V load(const T* at) { return load_wide(at); }
  template <int kPixels>
  HWY_INLINE void store(V (&sums)[kPixels], int64_t c, T* to) const {
    const D d;
    if (steps.scale != nullptr) {
      const V scale = hn::LoadU(d, steps.scale + c), shift = hn::LoadU(d, steps.shift + c);
#pragma GCC unroll 8
      for (int t = 0; t < kPixels; ++t) sums[t] = hn::Add(hn::Mul(Rounding::rounded(sums[t]), scale), shift);
    }
    const V low = IntegerRounding::rounded(hn::Set(d, steps.low)),
            high = IntegerRounding::rounded(hn::Set(d, steps.high));
#pragma GCC unroll 8
    for (int t = 0; t < kPixels; ++t) Rounding::store(clamp_of(sums[t], low, high), to + t * conv.channels + c);
  }
  void finish(T*, int64_t) const {}
};
