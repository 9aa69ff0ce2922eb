#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/tensor/tensor.h"

// Pictures as tensors.
namespace tensord::vision {

// Which channels a picture gets, as torchvision's ImageReadMode. A JPEG has no alpha: the modes that want one refuse
// it.
enum class ImageMode {
  kUnchanged,  // those of the file: 1, 2, 3 or 4. A palette becomes RGB, or RGBA where it has transparency; CMYK stays
  kGray,
  kGrayAlpha,
  kRGB,
  kRGBAlpha,
};

struct ImageOptions {
  ImageMode mode = ImageMode::kUnchanged;
  // Turns the picture as its EXIF data say; otherwise it is as stored.
  bool apply_exif_orientation = false;
  // PNGs of 16 bits: int32 with 0 … 65535 instead of uint8, for which they are scaled and rounded. Others stay uint8.
  bool keep_16_bits = false;
  // What a file may claim to have; Pillow's bound.
  int64_t max_pixels = 178'956'970;
};

// A JPEG or PNG as a contiguous tensor [channels, height, width] of uint8, with torchvision's numbers. The bytes are
// taken to be hostile. Throws Error that starts with `source`: kUnimplemented (another format, colors that the mode
// cannot have), kDataLoss (truncated, or damaged so that the pixels would not be right), kResourceExhausted (more
// pixels than allowed). Thread-safe.
Tensor decode_image(std::string_view bytes, const ImageOptions& options = {}, const std::string& source = "image");
// The bytes as a tensor of uint8 with one dimension.
Tensor decode_image(const Tensor& bytes, const ImageOptions& options = {});

// The same of a file. Also throws Error{kNotFound}.
Tensor read_image(const std::string& path, const ImageOptions& options = {});

}  // namespace tensord::vision
