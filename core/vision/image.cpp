#include "core/vision/image.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/tensor/mapped_file.h"
#include "core/vision/decoders.h"

namespace tensord::vision {
namespace {

// Separates the channels and applies the orientation. `to` is [channels, height, width] of the oriented image.
template <class From, class To>
void spread(const Pixels& pixels, To* to) {
  const auto* from = static_cast<const From*>(pixels.bytes.raw_data());
  const int64_t height = pixels.height, width = pixels.width, channels = pixels.channels;
  const int o = pixels.orientation;
  const bool is_turned = o >= 5;  // rows become columns
  const bool from_right = o == 2 || o == 3 || o == 7 || o == 8, from_below = o == 3 || o == 4 || o == 6 || o == 7;
  const int64_t rows = is_turned ? width : height, columns = is_turned ? height : width;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        int64_t y = is_turned ? j : i, x = is_turned ? i : j;
        if (from_below) y = height - 1 - y;
        if (from_right) x = width - 1 - x;
        *to++ = static_cast<To>(from[(y * width + x) * channels + c]);
      }
    }
  }
}

constexpr std::string_view kJpeg = "\xff\xd8\xff", kPng = "\x89PNG\r\n\x1a\n";

[[noreturn]] void fail_format(const std::string& source) {
  fail(ErrorCode::kUnimplemented, source, ": is neither a JPEG nor a PNG");
}

}  // namespace

uint8_t* Pixels::allocate(size_t size_bytes) {
  bytes = Tensor::empty(Dims{static_cast<int64_t>(size_bytes)}, DType::kUInt8);
  return bytes.data<uint8_t>();
}

void check_size(uint64_t width, uint64_t height, const ImageOptions& options, const std::string& source) {
  if (width == 0 || height == 0) fail(ErrorCode::kDataLoss, source, ": an image of ", width, " x ", height, " pixels");
  const auto max = static_cast<uint64_t>(std::max<int64_t>(options.max_pixels, 0));
  if (width > max / height) {
    fail(ErrorCode::kResourceExhausted, source, ": an image of ", width, " x ", height, " pixels is larger than ", max,
         " pixels");
  }
}

int exif_orientation(std::string_view tiff) {
  constexpr uint64_t kOrientation = 0x0112, kShort = 3;
  const bool is_little = tiff.starts_with("II");
  if (tiff.size() < 8 || (!is_little && !tiff.starts_with("MM"))) return 1;
  const auto number = [&](size_t at, size_t bytes) {
    uint64_t out = 0;
    for (size_t i = 0; i < bytes; ++i)
      out = out << 8 | static_cast<unsigned char>(tiff[is_little ? at + bytes - 1 - i : at + i]);
    return out;
  };
  const uint64_t first = number(4, 4);
  if (number(2, 2) != 42 || first > tiff.size() - 2) return 1;
  const uint64_t entries = number(first, 2);
  for (uint64_t i = 0; i < entries; ++i) {
    const uint64_t at = first + 2 + i * 12;
    if (at + 12 > tiff.size()) return 1;
    if (number(at, 2) != kOrientation) continue;
    const uint64_t value = number(at + 8, 2);
    return number(at + 2, 2) == kShort && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Tensor decode_image(std::string_view bytes, const ImageOptions& options, const std::string& source) {
  Pixels pixels;
  if (bytes.starts_with(kJpeg))
    pixels = decode_jpeg(bytes, options, source);
  else if (bytes.starts_with(kPng))
    pixels = decode_png(bytes, options, source);
  else
    fail_format(source);
  const bool is_turned = pixels.orientation >= 5;
  const Dims sizes{pixels.channels, is_turned ? pixels.width : pixels.height, is_turned ? pixels.height : pixels.width};
  const Tensor out = Tensor::empty(sizes, options.keep_16_bits && pixels.is_16_bits ? DType::kInt32 : DType::kUInt8);
  if (out.dtype() == DType::kInt32)
    spread<uint16_t>(pixels, out.data<int32_t>());
  else
    spread<uint8_t>(pixels, out.data<uint8_t>());
  return out;
}

ImageSize read_image_size(std::string_view bytes, const std::string& source) {
  if (!bytes.starts_with(kJpeg) && !bytes.starts_with(kPng)) fail_format(source);
  const ImageSize size = bytes.starts_with(kJpeg) ? read_jpeg_size(bytes, source) : read_png_size(bytes, source);
  if (size.height < 1 || size.width < 1) {
    fail(ErrorCode::kDataLoss, source, ": an image of ", size.width, " x ", size.height, " pixels");
  }
  return size;
}

Tensor decode_image(const Tensor& bytes, const ImageOptions& options) {
  check(bytes.dtype() == DType::kUInt8 && bytes.ndim() == 1, "decode_image: expected uint8[bytes] but got ",
        describe(bytes));
  const Tensor dense = bytes.contiguous();
  return decode_image({static_cast<const char*>(dense.raw_data()), dense.size_bytes()}, options);
}

Tensor read_image(const std::string& path, const ImageOptions& options) {
  const auto file = MappedFile::open(path);
  return decode_image({file->data(), file->size()}, options, path);
}

}  // namespace tensord::vision
