#include "core/vision/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "core/base/error.h"

namespace tensord::vision {
namespace {

// Weights are whole multiples of 2^-22: a sum of 8-bit values with them fits 32 bits.
constexpr int kWeightBits = 22;
constexpr int32_t kHalf = 1 << (kWeightBits - 1);

struct Kernel {
  double support;  // in pixels of the image that is not shrunk
  double (*weight)(double x);
};

double box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

double triangle(double x) {
  x = std::abs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

// Pillow's constants are of float.
double hamming(double x) {
  x = std::abs(x);
  if (x == 0.0) return 1.0;
  if (x >= 1.0) return 0.0;
  x *= std::numbers::pi;
  return std::sin(x) / x * (double{0.54F} + double{0.46F} * std::cos(x));
}

// Keys' cubic convolution with a = -0.5.
double cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos(double x) { return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }

Kernel kernel_of(ResampleFilter filter) {
  switch (filter) {
    case ResampleFilter::kBox: return {0.5, box};
    case ResampleFilter::kHamming: return {1.0, hamming};
    case ResampleFilter::kBicubic: return {2.0, cubic};
    case ResampleFilter::kLanczos: return {3.0, lanczos};
    default: return {1.0, triangle};
  }
}

// For each output position along one axis: the first input position, and the weights from there on.
struct Windows {
  int64_t width = 0;  // reserved weights of a position
  std::vector<int64_t> first, count;
  std::vector<int32_t> weights;
};

Windows windows_of(int64_t from, int64_t to, const Kernel& kernel) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), stretch = std::max(scale, 1.0);
  const double support = kernel.support * stretch;
  Windows out;
  out.width = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  out.weights.resize(static_cast<size_t>(out.width * to));
  std::vector<double> exact(static_cast<size_t>(out.width));
  for (int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(std::floor(center - support + 0.5)), 0);
    const int64_t count = std::min<int64_t>(static_cast<int64_t>(std::floor(center + support + 0.5)), from) - first;
    double sum = 0;
    for (int64_t k = 0; k < count; ++k) {
      exact[k] = kernel.weight((static_cast<double>(k + first) - center + 0.5) * (1.0 / stretch));
      sum += exact[k];
    }
    for (int64_t k = 0; k < count; ++k) {
      const double weight = (sum != 0.0 ? exact[k] / sum : exact[k]) * (1 << kWeightBits);
      out.weights[static_cast<size_t>(i * out.width + k)] =
          static_cast<int32_t>(weight < 0 ? weight - 0.5 : weight + 0.5);
    }
    out.first.push_back(first);
    out.count.push_back(count);
  }
  return out;
}

uint8_t to_byte(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

void resample_row(const uint8_t* row, const Windows& windows, int64_t to, uint8_t* out) {
  for (int64_t x = 0; x < to; ++x) {
    const int32_t* weights = windows.weights.data() + x * windows.width;
    const uint8_t* pixels = row + windows.first[static_cast<size_t>(x)];
    int32_t sum = kHalf;
    for (int64_t k = 0; k < windows.count[static_cast<size_t>(x)]; ++k) sum += pixels[k] * weights[k];
    out[x] = to_byte(sum);
  }
}

// One row of the result, of `count` rows above each other.
void resample_rows(const uint8_t* rows, int64_t width, const int32_t* weights, int64_t count, int32_t* sums,
                   uint8_t* out) {
  std::fill_n(sums, width, kHalf);
  for (int64_t k = 0; k < count; ++k) {
    const uint8_t* row = rows + k * width;
    for (int64_t x = 0; x < width; ++x) sums[x] += row[x] * weights[k];
  }
  for (int64_t x = 0; x < width; ++x) out[x] = to_byte(sums[x]);
}

Tensor resample_width(const Tensor& image, int64_t width, const Kernel& kernel) {
  const Windows windows = windows_of(image.size(2), width, kernel);
  const Tensor out = Tensor::empty(Dims{image.size(0), image.size(1), width}, DType::kUInt8);
  for (int64_t row = 0; row < image.size(0) * image.size(1); ++row) {
    resample_row(image.data<uint8_t>() + row * image.size(2), windows, width, out.data<uint8_t>() + row * width);
  }
  return out;
}

Tensor resample_height(const Tensor& image, int64_t height, const Kernel& kernel) {
  const int64_t from = image.size(1), width = image.size(2);
  const Windows windows = windows_of(from, height, kernel);
  const Tensor out = Tensor::empty(Dims{image.size(0), height, width}, DType::kUInt8);
  std::vector<int32_t> sums(static_cast<size_t>(width));
  for (int64_t c = 0; c < image.size(0); ++c) {
    for (int64_t y = 0; y < height; ++y) {
      const auto i = static_cast<size_t>(y);
      const uint8_t* rows = image.data<uint8_t>() + (c * from + windows.first[i]) * width;
      resample_rows(rows, width, windows.weights.data() + y * windows.width, windows.count[i], sums.data(),
                    out.data<uint8_t>() + (c * height + y) * width);
    }
  }
  return out;
}

// The input position of each output position. Pillow adds up the step, so its rounding errors add up as well.
std::vector<int64_t> nearest_of(int64_t from, int64_t to) {
  const double step = static_cast<double>(from) / static_cast<double>(to);
  std::vector<int64_t> out;
  double at = step * 0.5;
  for (int64_t i = 0; i < to; ++i, at += step) out.push_back(std::min(static_cast<int64_t>(at), from - 1));
  return out;
}

Tensor pick_nearest(const Tensor& image, Size size) {
  const std::vector<int64_t> rows = nearest_of(image.size(1), size.height);
  const std::vector<int64_t> columns = nearest_of(image.size(2), size.width);
  const Tensor out = Tensor::empty(Dims{image.size(0), size.height, size.width}, DType::kUInt8);
  auto* to = out.data<uint8_t>();
  for (int64_t c = 0; c < image.size(0); ++c) {
    for (const int64_t y : rows) {
      const uint8_t* row = image.data<uint8_t>() + (c * image.size(1) + y) * image.size(2);
      for (const int64_t x : columns) *to++ = row[x];
    }
  }
  return out;
}

}  // namespace

Tensor resample(const Tensor& image, Size size, ResampleFilter filter) {
  check(image.ndim() == 3 && image.dtype() == DType::kUInt8 && image.is_contiguous(),
        "resample: expected a contiguous uint8 image [channels, height, width] but got ", describe(image));
  check(image.size(1) > 0 && image.size(2) > 0, "resample: the image has no pixels");
  check(size.height > 0 && size.width > 0, "resample: sizes must be at least 1 but are ", size.height, " and ",
        size.width);
  if (image.size(1) == size.height && image.size(2) == size.width) return image;
  if (filter == ResampleFilter::kNearest) return pick_nearest(image, size);
  const Kernel kernel = kernel_of(filter);
  const Tensor narrowed = image.size(2) == size.width ? image : resample_width(image, size.width, kernel);
  return image.size(1) == size.height ? narrowed : resample_height(narrowed, size.height, kernel);
}

}  // namespace tensord::vision
