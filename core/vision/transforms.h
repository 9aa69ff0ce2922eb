#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

// torchvision's transforms of tensors [..., channels, height, width], with the same names, options, defaults and
// results. They draw from the thread's generator in the same order as torchvision. A transform never writes to its
// input, and returns the input itself if nothing is to do. Thread-safe. All throw Error{kInvalidArgument} for invalid
// images and options.
namespace tensord::vision {

using Transform = std::function<Tensor(const Tensor&)>;

// A height and a width; one number sets both.
struct Size {
  Size(int64_t both) : height(both), width(both) {}  // NOLINT: a number is a size
  Size(int64_t height, int64_t width) : height(height), width(width) {}
  int64_t height, width;
};

// Margins: one number for all sides, {left and right, top and bottom}, or {left, top, right, bottom}. An empty list
// means none.
using Margins = std::vector<int64_t>;
enum class PaddingMode { kConstant, kEdge, kReflect };
enum class Interpolation { kNearest, kBilinear, kBicubic };

// Applies transforms one after the other.
struct Compose {
  std::vector<Transform> transforms;
  Tensor operator()(const Tensor& image) const;
};

// Wraps any function under torchvision's name.
struct Lambda {
  Transform function;
  Tensor operator()(const Tensor& image) const { return function(image); }
};

// Converts uint8 of 0 … 255 to float32 of 0 … 1; other dtypes stay.
struct ToTensor {
  Tensor operator()(const Tensor& image) const;
};

// (image - mean) / std with one number per channel or one for all. Only for floating-point images.
class Normalize {
 public:
  Normalize(std::vector<double> mean, std::vector<double> std);
  Tensor operator()(const Tensor& image) const;

 private:
  const std::vector<double> mean_, std_;
};

// Rounds integer images, as torchvision does for tensors.
class Resize {
 public:
  // Resizes the shorter side to `shorter` and keeps the aspect ratio; the longer side is at most `max_size`.
  explicit Resize(int64_t shorter, std::optional<int64_t> max_size = std::nullopt,
                  Interpolation interpolation = Interpolation::kBilinear, bool antialias = true);
  Resize(int64_t height, int64_t width, Interpolation interpolation = Interpolation::kBilinear, bool antialias = true);
  Tensor operator()(const Tensor& image) const;

 private:
  const std::optional<Size> size_;
  const int64_t shorter_ = 0;
  const std::optional<int64_t> max_size_;
  const Interpolation interpolation_;
  const bool antialias_;
};

struct Pad {
  Margins padding;
  double fill = 0;
  PaddingMode mode = PaddingMode::kConstant;
  Tensor operator()(const Tensor& image) const;
};

// Pads smaller images with zeros.
struct CenterCrop {
  Size size;
  Tensor operator()(const Tensor& image) const;
};

struct RandomCropOptions {
  Margins padding = {};
  bool pad_if_needed = false;
  double fill = 0;
  PaddingMode padding_mode = PaddingMode::kConstant;
};
struct RandomCrop {
  Size size;
  RandomCropOptions options = {};
  Tensor operator()(const Tensor& image) const;
};

struct RandomResizedCropOptions {
  std::pair<double, double> scale = {0.08, 1.0};
  std::pair<double, double> ratio = {3.0 / 4.0, 4.0 / 3.0};
  Interpolation interpolation = Interpolation::kBilinear;
  bool antialias = true;
};
struct RandomResizedCrop {
  Size size;
  RandomResizedCropOptions options = {};
  Tensor operator()(const Tensor& image) const;
};

// A part of an image.
struct Box {
  int64_t top, left, height, width;
};
// The part that RandomResizedCrop takes of an image of this size.
Box draw_resized_crop(int64_t height, int64_t width, const RandomResizedCropOptions& options);
// Draws whether something of probability p happens, also where p is 0 or 1. `what` begins its errors.
bool draw_chance(double p, const char* what);

struct RandomHorizontalFlip {
  double p = 0.5;
  Tensor operator()(const Tensor& image) const;
};
struct RandomVerticalFlip {
  double p = 0.5;
  Tensor operator()(const Tensor& image) const;
};

// For images of 1 or 3 channels.
struct Grayscale {
  int64_t num_output_channels = 1;
  Tensor operator()(const Tensor& image) const;
};

// Each number x sets a range for the factor: max(0, 1 - x) to 1 + x, for the hue -x to x. 0 means no change and no
// draw.
struct ColorJitter {
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;
  Tensor operator()(const Tensor& image) const;
};

// The functions that the transforms use, as torchvision.transforms.functional.
Tensor resize(const Tensor& image, Size size, Interpolation interpolation = Interpolation::kBilinear,
              bool antialias = true);
Tensor pad(const Tensor& image, const Margins& padding, double fill = 0, PaddingMode mode = PaddingMode::kConstant);
// Returns a view where the crop lies inside the image, and pads with zeros outside it.
Tensor crop(const Tensor& image, int64_t top, int64_t left, int64_t height, int64_t width);
Tensor rgb_to_grayscale(const Tensor& image, int64_t num_output_channels = 1);
Tensor adjust_brightness(const Tensor& image, double factor);
Tensor adjust_contrast(const Tensor& image, double factor);
Tensor adjust_saturation(const Tensor& image, double factor);
Tensor adjust_hue(const Tensor& image, double factor);  // from -0.5 to 0.5

}  // namespace tensord::vision
