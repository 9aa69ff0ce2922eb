#include "core/vision/transforms.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/ops/run.h"
#include "ops/pointwise.h"
#include "ops/random.h"
#include "ops/view.h"
#include "ops/vision.h"

namespace tensord::vision {
namespace {

using ops::Value;

struct Extent {
  int64_t height, width;
};

Extent extent_of(const Tensor& image, const char* transform) {
  check(image.ndim() >= 2, transform, ": expected an image [..., height, width] but got ", describe(image));
  return {image.size(-2), image.size(-1)};
}

// Python's round(): halves go to the even number.
int64_t rounded(double value) { return static_cast<int64_t>(std::nearbyint(value)); }

double draw(double from, double to) {
  const Tensor one = Tensor::empty(Dims{1}, DType::kFloat32);
  ops::uniform_(one, from, to);
  return one.item_double();
}
int64_t draw_below(int64_t end) { return ops::randint(int64_t{0}, end, Dims{1}).item_int(); }

// {left, top, right, bottom}.
Margins four(const Margins& padding) {
  if (padding.empty()) return {0, 0, 0, 0};
  if (padding.size() == 1) return Margins(4, padding[0]);
  if (padding.size() == 2) return {padding[0], padding[1], padding[0], padding[1]};
  check(padding.size() == 4, "Pad: expected 1, 2 or 4 margins but got ", padding.size());
  return padding;
}

}  // namespace

Tensor Compose::operator()(const Tensor& image) const {
  Tensor out = image;
  for (const Transform& transform : transforms) out = transform(out);
  return out;
}

Tensor ToTensor::operator()(const Tensor& image) const {
  if (image.dtype() != DType::kUInt8) return image;
  return ops::div(image.to(DType::kFloat32), 255);
}

Normalize::Normalize(std::vector<double> mean, std::vector<double> std) : mean_(std::move(mean)), std_(std::move(std)) {
  check(!mean_.empty() && !std_.empty(), "Normalize: mean and std need a number at least");
}

Tensor Normalize::operator()(const Tensor& image) const {
  check(is_floating(image.dtype()), "Normalize: expected a floating image but got ", describe(image));
  check(image.ndim() >= 3, "Normalize: expected an image [..., channels, height, width] but got ", describe(image));
  const auto by_channel = [&](const std::vector<double>& numbers, const char* what) {
    const auto count = static_cast<int64_t>(numbers.size());
    check(count == 1 || count == image.size(-3), "Normalize: ", what, " has ", count, " numbers, the image ",
          image.size(-3), " channels");
    const Tensor out = Tensor::empty(Dims{count, 1, 1}, DType::kFloat64);
    std::copy(numbers.begin(), numbers.end(), out.data<double>());
    return out.to(image.dtype());
  };
  const Tensor mean = by_channel(mean_, "mean"), std = by_channel(std_, "std");
  for (const double one : std_) check(one != 0, "Normalize: std has a zero");
  return ops::div(ops::sub(image, mean), std);
}

Resize::Resize(int64_t shorter, std::optional<int64_t> max_size, Interpolation interpolation, bool antialias)
    : shorter_(shorter), max_size_(max_size), interpolation_(interpolation), antialias_(antialias) {
  check(shorter > 0, "Resize: the size must be at least 1 but is ", shorter);
  check(!max_size || *max_size > shorter, "Resize: max_size must be larger than the size");
}
Resize::Resize(int64_t height, int64_t width, Interpolation interpolation, bool antialias)
    : size_(Size(height, width)), interpolation_(interpolation), antialias_(antialias) {
  check(height > 0 && width > 0, "Resize: sizes must be at least 1 but are ", height, " and ", width);
}

Tensor Resize::operator()(const Tensor& image) const {
  if (size_) return resize(image, *size_, interpolation_, antialias_);
  const auto [height, width] = extent_of(image, "Resize");
  const int64_t shorter = std::min(height, width), longer = std::max(height, width);
  check(shorter > 0, "Resize: the image has no pixels");
  int64_t new_shorter = shorter_;
  auto new_longer = static_cast<int64_t>(static_cast<double>(shorter_ * longer) / static_cast<double>(shorter));
  if (max_size_ && new_longer > *max_size_) {
    new_shorter = static_cast<int64_t>(static_cast<double>(*max_size_ * new_shorter) / static_cast<double>(new_longer));
    new_longer = *max_size_;
  }
  const Size size = width <= height ? Size(new_longer, new_shorter) : Size(new_shorter, new_longer);
  return resize(image, size, interpolation_, antialias_);
}

Tensor resize(const Tensor& image, Size size, Interpolation interpolation, bool antialias) {
  const auto [height, width] = extent_of(image, "resize");
  if (height == size.height && width == size.width) return image;
  check(image.ndim() <= 4, "resize: expected at most 4 dimensions but got ", describe(image));
  const DType dtype = image.dtype();
  const bool is_computed = dtype == DType::kFloat32 || dtype == DType::kFloat64;
  Tensor x = is_computed ? image : image.to(DType::kFloat32);
  for (int64_t i = image.ndim(); i < 4; ++i) x = ops::unsqueeze(x, 0);
  const Dims to{size.height, size.width};
  const Value none = Value();
  if (interpolation == Interpolation::kNearest) {
    x = ops::upsample_nearest2d(x, to);
  } else {
    const bool is_cubic = interpolation == Interpolation::kBicubic;
    const char* op = is_cubic ? (antialias ? "aten::_upsample_bicubic2d_aa" : "aten::upsample_bicubic2d")
                              : (antialias ? "aten::_upsample_bilinear2d_aa" : "aten::upsample_bilinear2d");
    x = ops::call_by_name(op, x, to, false, none, none);
    if (is_cubic && dtype == DType::kUInt8) x = ops::clamp(x, 0, 255);
  }
  for (int64_t i = image.ndim(); i < 4; ++i) x = ops::squeeze(x, 0);
  if (is_computed) return x;
  return (is_floating(dtype) ? x : ops::round(x)).to(dtype);
}

Tensor pad(const Tensor& image, const Margins& padding, double fill, PaddingMode mode) {
  extent_of(image, "Pad");
  const Margins margins = four(padding);
  // aten::pad takes the last dimension first.
  const Dims sides{margins[0], margins[2], margins[1], margins[3]};
  if (mode == PaddingMode::kConstant) return ops::pad(image, sides, "constant", fill);
  for (const int64_t side : margins) check(side >= 0, "Pad: margins below 0 go with constant padding only");
  const bool is_computed = is_floating(image.dtype());
  Tensor x = is_computed ? image : image.to(DType::kFloat32);
  const bool is_flat = x.ndim() < 3;
  if (is_flat) x = ops::unsqueeze(x, 0);
  x = ops::pad(x, sides, mode == PaddingMode::kEdge ? "replicate" : "reflect");
  if (is_flat) x = ops::squeeze(x, 0);
  return is_computed ? x : x.to(image.dtype());
}
Tensor Pad::operator()(const Tensor& image) const { return pad(image, padding, fill, mode); }

Tensor crop(const Tensor& image, int64_t top, int64_t left, int64_t height, int64_t width) {
  const auto [all_rows, all_columns] = extent_of(image, "crop");
  check(height >= 0 && width >= 0, "crop: a size is below 0");
  const int64_t bottom = top + height, right = left + width;
  const int64_t first_row = std::clamp<int64_t>(top, 0, all_rows), end_row = std::clamp(bottom, first_row, all_rows);
  const int64_t first_column = std::clamp<int64_t>(left, 0, all_columns);
  const int64_t end_column = std::clamp(right, first_column, all_columns);
  Tensor out = ops::narrow(image, -2, first_row, end_row - first_row);
  out = ops::narrow(out, -1, first_column, end_column - first_column);
  if (out.size(-2) == height && out.size(-1) == width) return out;
  const int64_t above = std::clamp<int64_t>(-top, 0, height), before = std::clamp<int64_t>(-left, 0, width);
  return pad(out, {before, above, width - before - out.size(-1), height - above - out.size(-2)});
}

Tensor CenterCrop::operator()(const Tensor& image) const {
  const auto [height, width] = extent_of(image, "CenterCrop");
  const int64_t missing_rows = std::max<int64_t>(size.height - height, 0);
  const int64_t missing_columns = std::max<int64_t>(size.width - width, 0);
  Tensor x = image;
  if (missing_rows > 0 || missing_columns > 0) {
    x = pad(x, {missing_columns / 2, missing_rows / 2, (missing_columns + 1) / 2, (missing_rows + 1) / 2});
  }
  const int64_t top = rounded(static_cast<double>(x.size(-2) - size.height) / 2);
  const int64_t left = rounded(static_cast<double>(x.size(-1) - size.width) / 2);
  return crop(x, top, left, size.height, size.width);
}

Tensor RandomCrop::operator()(const Tensor& image) const {
  extent_of(image, "RandomCrop");
  const auto padded = [&](const Tensor& x, const Margins& margins) {
    return pad(x, margins, options.fill, options.padding_mode);
  };
  Tensor x = options.padding.empty() ? image : padded(image, options.padding);
  if (options.pad_if_needed && x.size(-1) < size.width) x = padded(x, {size.width - x.size(-1), 0});
  if (options.pad_if_needed && x.size(-2) < size.height) x = padded(x, {0, size.height - x.size(-2)});
  const auto [height, width] = extent_of(x, "RandomCrop");
  check(height >= size.height && width >= size.width, "RandomCrop: the crop of ", size.height, " x ", size.width,
        " is larger than the image of ", height, " x ", width);
  if (height == size.height && width == size.width) return x;
  const int64_t top = draw_below(height - size.height + 1);
  const int64_t left = draw_below(width - size.width + 1);
  return crop(x, top, left, size.height, size.width);
}

// Tries ten times to draw an area and an aspect ratio that fit; then falls back to the largest centered crop.
Box draw_resized_crop(int64_t height, int64_t width, const RandomResizedCropOptions& options) {
  check(options.ratio.first > 0 && options.ratio.first <= options.ratio.second && options.scale.first > 0 &&
            options.scale.first <= options.scale.second,
        "RandomResizedCrop: scale and ratio are ranges of numbers above 0");
  const auto [min, max] = options.ratio;
  const double area = static_cast<double>(height * width);
  const auto log_of = [](double ratio) { return static_cast<double>(std::log(static_cast<float>(ratio))); };
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double part = area * draw(options.scale.first, options.scale.second);
    const double ratio = std::exp(static_cast<float>(draw(log_of(min), log_of(max))));
    const int64_t w = rounded(std::sqrt(part * ratio)), h = rounded(std::sqrt(part / ratio));
    if (w <= 0 || w > width || h <= 0 || h > height) continue;
    const int64_t top = draw_below(height - h + 1);
    return {top, draw_below(width - w + 1), h, w};
  }
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  int64_t w = width, h = height;
  if (ratio < min)
    h = rounded(static_cast<double>(w) / min);
  else if (ratio > max)
    w = rounded(static_cast<double>(h) * max);
  return {(height - h) / 2, (width - w) / 2, h, w};
}

bool draw_chance(double p, const char* what) {
  check(p >= 0 && p <= 1, what, ": p must be between 0 and 1 but is ", p);
  return ops::rand(Dims{1}).item_double() < static_cast<double>(static_cast<float>(p));
}

Tensor RandomResizedCrop::operator()(const Tensor& image) const {
  const auto [height, width] = extent_of(image, "RandomResizedCrop");
  check(height > 0 && width > 0, "RandomResizedCrop: the image has no pixels");
  const Box box = draw_resized_crop(height, width, options);
  const Tensor part = crop(image, box.top, box.left, box.height, box.width);
  return resize(part, size, options.interpolation, options.antialias);
}

Tensor RandomHorizontalFlip::operator()(const Tensor& image) const {
  extent_of(image, "RandomHorizontalFlip");
  return draw_chance(p, "RandomHorizontalFlip") ? ops::flip(image, Dims{-1}) : image;
}
Tensor RandomVerticalFlip::operator()(const Tensor& image) const {
  extent_of(image, "RandomVerticalFlip");
  return draw_chance(p, "RandomVerticalFlip") ? ops::flip(image, Dims{-2}) : image;
}

}  // namespace tensord::vision
