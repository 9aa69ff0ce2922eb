#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/vision/image.h"

// The parts of decode_image.
namespace tensord::vision {

// The decoded pixels of an image, interleaved as in the file.
struct Pixels {
  int64_t height = 0, width = 0, channels = 0;
  bool is_16_bits = false;  // in the machine's byte order
  Tensor bytes;             // uint8[bytes], so that the memory is charged as every tensor's
  int orientation = 1;      // 1 … 8, as in EXIF

  // Allocates `bytes` and returns them.
  uint8_t* allocate(size_t size_bytes);
};

Pixels decode_jpeg(std::string_view bytes, const ImageOptions& options, const std::string& source);
Pixels decode_png(std::string_view bytes, const ImageOptions& options, const std::string& source);

// Only what the size needs.
ImageSize read_jpeg_size(std::string_view bytes, const std::string& source);
ImageSize read_png_size(std::string_view bytes, const std::string& source);

// Throws Error{kResourceExhausted} if the image has too many pixels, kDataLoss if it has none.
void check_size(uint64_t width, uint64_t height, const ImageOptions& options, const std::string& source);

// The orientation in the TIFF data ("II*\0…") of EXIF; 1 if they give none.
int exif_orientation(std::string_view tiff);

}  // namespace tensord::vision
