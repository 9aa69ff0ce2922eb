#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/tensor/tensor.h"

// Decodes images into tensors.
namespace tensord::vision {

// The channels of the decoded image, as torchvision's ImageReadMode. A JPEG has no alpha channel, so the modes with
// alpha reject it.
enum class ImageMode {
  kUnchanged,  // the file's channels: 1, 2, 3 or 4. A palette becomes RGB, or RGBA if it has transparency; CMYK stays
  kGray,
  kGrayAlpha,
  kRGB,
  kRGBAlpha,
};

struct ImageOptions {
  ImageMode mode = ImageMode::kUnchanged;
  // Applies the EXIF orientation; otherwise the image is as stored.
  bool apply_exif_orientation = false;
  // Returns 16-bit PNGs as int32 with 0 … 65535. Otherwise they are scaled and rounded to uint8. Other images are
  // always uint8.
  bool keep_16_bits = false;
  // The largest number of pixels that a file may declare. This is Pillow's limit.
  int64_t max_pixels = 178'956'970;
};

// Decodes a JPEG or PNG to a contiguous uint8 tensor [channels, height, width] with the same numbers as torchvision.
// The bytes are untrusted. Throws Error whose message starts with `source`: kUnimplemented (another format, or colors
// that the mode does not support), kDataLoss (truncated, or so damaged that pixels would be wrong), kResourceExhausted
// (too many pixels). Thread-safe.
Tensor decode_image(std::string_view bytes, const ImageOptions& options = {}, const std::string& source = "image");
// Takes the bytes as a 1-D uint8 tensor.
Tensor decode_image(const Tensor& bytes, const ImageOptions& options = {});

// Height and width as stored, before the EXIF orientation, at least 1.
struct ImageSize {
  int64_t height, width;
  uint64_t decoder_bytes = 0;  // what a decoder keeps besides the pixels: the coefficients of a progressive JPEG
};
// Reads only the file's header, in a time that does not grow with the file, and checks no limit. Throws as decode_image
// does; what is wrong behind the size is found by decode_image only.
ImageSize read_image_size(std::string_view bytes, const std::string& source = "image");

// Decodes a file. Also throws Error{kNotFound}.
Tensor read_image(const std::string& path, const ImageOptions& options = {});

}  // namespace tensord::vision
