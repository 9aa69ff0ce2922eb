#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/vision/image.h"

// What decode_image is made of.
namespace tensord::vision {

// A picture pixel by pixel, as files have it.
struct Pixels {
  int64_t height = 0, width = 0, channels = 0;
  bool is_16_bits = false;  // then in the machine's byte order
  std::vector<uint8_t> bytes;
  int orientation = 1;  // 1 … 8, as EXIF numbers them
};

Pixels decode_jpeg(std::string_view bytes, const ImageOptions& options, const std::string& source);
Pixels decode_png(std::string_view bytes, const ImageOptions& options, const std::string& source);

// Throws Error{kResourceExhausted} for more pixels than allowed, kDataLoss for none.
void check_size(uint64_t width, uint64_t height, const ImageOptions& options, const std::string& source);

// The orientation that TIFF data ("II*\0…") of EXIF name; 1 where they name none.
int exif_orientation(std::string_view tiff);

}  // namespace tensord::vision
