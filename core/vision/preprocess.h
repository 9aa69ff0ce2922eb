#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"
#include "core/vision/image.h"
#include "core/vision/resample.h"
#include "core/vision/transforms.h"

// From the bytes of an image file to the tensor that a model takes, with the numbers of Pillow and torchvision:
// Image.open(file).convert(…), Resize, CenterCrop, ToTensor, Normalize.
namespace tensord::vision {

enum class ColorOrder { kRGB, kBGR, kGray };

struct PreprocessOptions {
  ColorOrder colors = ColorOrder::kRGB;
  bool apply_exif_orientation = false;
  // At most one of the two: the shorter side, with the aspect ratio kept; or height and width.
  std::optional<int64_t> shorter_side = {};
  std::optional<Size> resized = {};
  ResampleFilter filter = ResampleFilter::kBilinear;
  std::optional<Size> cropped = {};  // the center, padded with zeros where the image is smaller
  // Of floating-point results: value / 255, or value * rescale_factor; then (value - mean) / std. One number for each
  // channel, or one for all; empty: none.
  std::optional<double> rescale_factor = {};
  std::vector<double> mean = {}, std = {};
  bool channels_last = false;       // [height, width, channels] instead of [channels, height, width]
  DType dtype = DType::kFloat32;    // or kFloat16, kUInt8
  int64_t max_pixels = 50'000'000;  // of the file, and of what it is resized to
};

// Random changes of images to train on, with torchvision's draws from the thread's generator, in this order.
struct Augmentation {
  // Above 0: RandomResizedCrop(size, scale=(this, 1)) takes the place of the resize and the crop, and size is theirs.
  double smallest_crop = 0;
  double horizontal_flip = 0;  // its probability; 0: none
};

// Immutable and thread-safe.
class Preprocess {
 public:
  // Throws Error{kInvalidArgument} for options that contradict each other or are out of bounds.
  explicit Preprocess(PreprocessOptions options);

  const PreprocessOptions& options() const { return options_; }
  int64_t channels() const { return options_.colors == ColorOrder::kGray ? 1 : 3; }
  // Sizes of a result; -1 where they depend on the image.
  Dims sizes() const;
  // What a file will take, from its header: the elements of the result, and the bytes that the decoder keeps besides
  // the pixels. Throws as operator() does.
  struct Needs {
    int64_t elements;
    uint64_t decoder_bytes;
  };
  Needs needs_of(std::string_view file, const std::string& source) const;
  // Returns a contiguous tensor. The bytes are untrusted. Throws Error that starts with `source`: kUnimplemented
  // (neither JPEG nor PNG, or unsupported colors), kDataLoss (damaged), kOutOfRange (more pixels than max_pixels, known
  // before anything is decoded). At most 6 bytes for each pixel of the file are held meanwhile, as tensors, and as many
  // more by libjpeg for a progressive JPEG. REQUIRES: sizes() are known if `augmentation` crops.
  Tensor operator()(std::string_view file, const std::string& source, const Augmentation& augmentation = {}) const;

 private:
  ImageSize check_file(std::string_view file, const std::string& source) const;
  Size size_after_resize(ImageSize image, const std::string& source) const;
  void check_resize(ImageSize image, Size size, const std::string& source) const;
  Tensor crop_at_random(const Tensor& image, double smallest, const std::string& source) const;
  // `has_center`: the center is cut out.
  Tensor arrange(const Tensor& image, bool has_center, bool is_mirrored) const;
  template <class T>
  Tensor arrange_as(const Tensor& image, bool has_center, bool is_mirrored) const;

  const PreprocessOptions options_;
  Tensor values_;  // dtype[channels, 256]: the number for each byte
};

}  // namespace tensord::vision
