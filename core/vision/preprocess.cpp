#include "core/vision/preprocess.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace tensord::vision {
namespace {

// Bounds what the weights of a resize take.
constexpr int64_t kMaxSide = 65535;
constexpr int kBytes = 256;

void check_sides(const std::optional<Size>& size, int64_t max_pixels, const char* what) {
  if (!size) return;
  check(size->height > 0 && size->width > 0 && size->height <= kMaxSide && size->width <= kMaxSide, what,
        ": sides must be from 1 to ", kMaxSide, " but are ", size->height, " and ", size->width);
  check(size->height * size->width <= max_pixels, what, ": ", size->height, " x ", size->width, " is larger than ",
        max_pixels, " pixels");
}

// One number for each channel.
std::vector<double> by_channel(const std::vector<double>& numbers, double otherwise, int64_t channels,
                               const char* what) {
  if (numbers.empty()) return std::vector<double>(static_cast<size_t>(channels), otherwise);
  if (numbers.size() == 1) return std::vector<double>(static_cast<size_t>(channels), numbers[0]);
  check(static_cast<int64_t>(numbers.size()) == channels, what, ": has ", numbers.size(), " numbers for ", channels,
        " channels");
  return numbers;
}

// What ToTensor and Normalize make of each byte, in their order of float32 operations.
Tensor table_of_values(const PreprocessOptions& options, int64_t channels) {
  const std::vector<double> mean = by_channel(options.mean, 0, channels, "mean");
  const std::vector<double> std = by_channel(options.std, 1, channels, "std");
  for (const double one : std) check(static_cast<float>(one) != 0, "std: has a zero");
  const Tensor out = Tensor::empty(Dims{channels, kBytes}, DType::kFloat32);
  auto* to = out.data<float>();
  for (size_t c = 0; c < mean.size(); ++c) {
    for (int byte = 0; byte < kBytes; ++byte) {
      auto value = static_cast<float>(byte);
      value = options.rescale_factor ? value * static_cast<float>(*options.rescale_factor) : value / 255.0F;
      const bool is_normalized = !options.mean.empty() || !options.std.empty();
      *to++ = is_normalized ? (value - static_cast<float>(mean[c])) / static_cast<float>(std[c]) : value;
    }
  }
  return out.to(options.dtype);
}

// The luma of Pillow's convert("L").
Tensor to_gray(const Tensor& image) {
  const int64_t plane = image.size(1) * image.size(2);
  const Tensor out = Tensor::empty(Dims{1, image.size(1), image.size(2)}, DType::kUInt8);
  const auto* red = image.data<uint8_t>();
  const uint8_t *green = red + plane, *blue = green + plane;
  auto* to = out.data<uint8_t>();
  for (int64_t i = 0; i < plane; ++i) {
    to[i] = static_cast<uint8_t>((red[i] * 19595 + green[i] * 38470 + blue[i] * 7471 + 0x8000) >> 16);
  }
  return out;
}

// Where a centered crop of `size` begins along a side; below 0 where the image is smaller. torchvision rounds an odd
// rest to the even number, and pads less before than after.
int64_t crop_begin(int64_t side, int64_t size) {
  if (side < size) return -((size - side) / 2);
  return static_cast<int64_t>(std::nearbyint(static_cast<double>(side - size) / 2));
}

// Writes the window of a plane; outside of the plane there are zero bytes.
template <class T>
void write_plane(const uint8_t* plane, ImageSize size, const Box& window, bool is_mirrored, const T* values,
                 int64_t step, T* to) {
  for (int64_t y = window.top; y < window.top + window.height; ++y) {
    for (int64_t i = 0; i < window.width; ++i, to += step) {
      const int64_t x = window.left + (is_mirrored ? window.width - 1 - i : i);
      const bool is_inside = y >= 0 && y < size.height && x >= 0 && x < size.width;
      *to = values[is_inside ? plane[y * size.width + x] : 0];
    }
  }
}

}  // namespace

Preprocess::Preprocess(PreprocessOptions options) : options_(std::move(options)) {
  check(options_.max_pixels > 0, "max_pixels: must be at least 1");
  check(!options_.shorter_side || !options_.resized, "resize: either the shorter side or both sides");
  if (options_.shorter_side) check_sides(Size(*options_.shorter_side), options_.max_pixels, "resize");
  check_sides(options_.resized, options_.max_pixels, "resize");
  check_sides(options_.cropped, options_.max_pixels, "crop");
  const bool is_bytes = options_.dtype == DType::kUInt8;
  check(is_bytes || options_.dtype == DType::kFloat32 || options_.dtype == DType::kFloat16,
        "dtype: ", name_of(options_.dtype), " is not supported");
  const bool has_numbers = options_.rescale_factor || !options_.mean.empty() || !options_.std.empty();
  check(!is_bytes || !has_numbers, "dtype: bytes are not rescaled and have no mean and std");
  if (!is_bytes) {
    values_ = table_of_values(options_, channels());
    return;
  }
  values_ = Tensor::empty(Dims{channels(), kBytes}, DType::kUInt8);
  for (int64_t i = 0; i < values_.numel(); ++i) values_.data<uint8_t>()[i] = static_cast<uint8_t>(i % kBytes);
}

Dims Preprocess::sizes() const {
  Size size(-1);
  if (options_.cropped)
    size = *options_.cropped;
  else if (options_.resized)
    size = *options_.resized;
  return options_.channels_last ? Dims{size.height, size.width, channels()} : Dims{channels(), size.height, size.width};
}

ImageSize Preprocess::check_file(std::string_view file, const std::string& source) const {
  const ImageSize size = read_image_size(file, source);
  if (size.height > kMaxSide || size.width > kMaxSide || size.height * size.width > options_.max_pixels) {
    fail(ErrorCode::kOutOfRange, source, ": an image of ", size.width, " x ", size.height, " pixels; the limit is ",
         options_.max_pixels, " pixels, and ", kMaxSide, " for a side");
  }
  return size;
}

Size Preprocess::size_after_resize(ImageSize image, const std::string& source) const {
  Size size(image.height, image.width);
  if (options_.resized) size = *options_.resized;
  if (options_.shorter_side) {
    const int64_t shorter = std::min(image.height, image.width), longer = std::max(image.height, image.width);
    const auto new_longer =
        static_cast<int64_t>(static_cast<double>(*options_.shorter_side * longer) / static_cast<double>(shorter));
    size = image.width <= image.height ? Size(new_longer, *options_.shorter_side)
                                       : Size(*options_.shorter_side, new_longer);
  }
  check_resize(image, size, source);
  return size;
}

void Preprocess::check_resize(ImageSize image, Size size, const std::string& source) const {
  // Between the two passes the image has its new width and its old height.
  const int64_t largest = size.width * std::max(size.height, image.height);
  if (largest > options_.max_pixels) {
    fail(ErrorCode::kOutOfRange, source, ": resizing an image of ", image.width, " x ", image.height, " pixels takes ",
         largest, " pixels; the limit is ", options_.max_pixels);
  }
}

Preprocess::Needs Preprocess::needs_of(std::string_view file, const std::string& source) const {
  const ImageSize stored = check_file(file, source);
  const Size size = options_.cropped ? *options_.cropped : size_after_resize(stored, source);
  return {size.height * size.width * channels(), stored.decoder_bytes};
}

Tensor Preprocess::crop_at_random(const Tensor& image, double smallest, const std::string& source) const {
  const Size size = options_.cropped ? *options_.cropped : options_.resized.value();
  const Box box = draw_resized_crop(image.size(1), image.size(2), {.scale = {smallest, 1.0}});
  check_resize({box.height, box.width}, size, source);
  return resample(crop(image, box.top, box.left, box.height, box.width).contiguous(), size, options_.filter);
}

Tensor Preprocess::operator()(std::string_view file, const std::string& source,
                              const Augmentation& augmentation) const {
  check_file(file, source);
  const ImageOptions image_options{.mode = ImageMode::kRGB,
                                   .apply_exif_orientation = options_.apply_exif_orientation,
                                   .max_pixels = options_.max_pixels};
  Tensor image = decode_image(file, image_options, source);
  if (options_.colors == ColorOrder::kGray) image = to_gray(image);
  const bool is_cropped = augmentation.smallest_crop > 0;
  image = is_cropped ? crop_at_random(image, augmentation.smallest_crop, source)
                     : resample(image, size_after_resize({image.size(1), image.size(2)}, source), options_.filter);
  const double chance = augmentation.horizontal_flip;
  return arrange(image, !is_cropped, chance > 0 && draw_chance(chance, "horizontal flip"));
}

Tensor Preprocess::arrange(const Tensor& image, bool has_center, bool is_mirrored) const {
  switch (options_.dtype) {
    case DType::kFloat32: return arrange_as<float>(image, has_center, is_mirrored);
    case DType::kFloat16: return arrange_as<Half>(image, has_center, is_mirrored);
    default: return arrange_as<uint8_t>(image, has_center, is_mirrored);
  }
}

template <class T>
Tensor Preprocess::arrange_as(const Tensor& image, bool has_center, bool is_mirrored) const {
  const ImageSize size{image.size(1), image.size(2)};
  Box window{0, 0, size.height, size.width};
  if (const std::optional<Size>& crop = options_.cropped; crop && has_center) {
    window = {crop_begin(size.height, crop->height), crop_begin(size.width, crop->width), crop->height, crop->width};
  }
  const int64_t count = channels(), plane = window.height * window.width;
  const Tensor out = Tensor::empty(
      options_.channels_last ? Dims{window.height, window.width, count} : Dims{count, window.height, window.width},
      options_.dtype);
  for (int64_t c = 0; c < count; ++c) {
    const int64_t from = options_.colors == ColorOrder::kBGR ? count - 1 - c : c;
    write_plane(image.data<uint8_t>() + from * size.height * size.width, size, window, is_mirrored,
                values_.data<T>() + c * kBytes, options_.channels_last ? count : 1,
                out.data<T>() + c * (options_.channels_last ? 1 : plane));
  }
  return out;
}

}  // namespace tensord::vision
