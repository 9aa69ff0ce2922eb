// libpng reports errors with longjmp, as libjpeg does (jpeg.cpp). The jump skips only frames that own nothing.
#include <algorithm>
#include <bit>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <png.h>

#include "core/base/error.h"
#include "core/vision/decoders.h"

namespace tensord::vision {
namespace {

// The largest decompressed size of a profile.
constexpr size_t kMaxChunk = 8 << 20;
// No pixel depends on these chunks, and libpng would allocate whatever length they claim, and decompress them. Each
// name has a zero behind it.
constexpr unsigned char kSkippedChunks[] = "tEXt\0zTXt\0iTXt\0sPLT\0pCAL\0sCAL";

struct Reader {
  std::string_view rest;
  char message[256];
};

void on_error(png_structp png, png_const_charp message) {
  auto* reader = static_cast<Reader*>(png_get_error_ptr(png));
  std::snprintf(reader->message, sizeof reader->message, "%s", message);
  png_longjmp(png, 1);
}

void read_bytes(png_structp png, png_bytep to, size_t count) {
  auto* reader = static_cast<Reader*>(png_get_io_ptr(png));
  if (count > reader->rest.size()) png_error(png, "the image is truncated");
  std::memcpy(to, reader->rest.data(), count);
  reader->rest.remove_prefix(count);
}

class PngDecoder {
 public:
  PngDecoder(std::string_view bytes, const ImageOptions& options, const std::string& source)
      : options_(options), source_(source), reader_{bytes, ""} {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader_, on_error, [](png_structp, png_const_charp) {});
    if (png_) info_ = png_create_info_struct(png_);
    if (info_) return;
    png_destroy_read_struct(&png_, nullptr, nullptr);
    fail(ErrorCode::kResourceExhausted, source_, ": no memory to read a PNG");
  }
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;

  void read_header() {
    guarded([this] {
      png_set_read_fn(png_, &reader_, read_bytes);
      png_set_user_limits(png_, 1 << 30, 1 << 30);
      png_set_chunk_malloc_max(png_, kMaxChunk);
      png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, kSkippedChunks, sizeof kSkippedChunks / 5);
      png_read_info(png_, info_);
    });
  }

  Pixels decode() {
    read_header();
    check_size(png_get_image_width(png_, info_), png_get_image_height(png_, info_), options_, source_);
    guarded([this] { set_transforms(); });
    Pixels pixels;
    pixels.width = png_get_image_width(png_, info_);
    pixels.height = png_get_image_height(png_, info_);
    pixels.channels = png_get_channels(png_, info_);
    pixels.is_16_bits = png_get_bit_depth(png_, info_) == 16;
    const size_t row_bytes = png_get_rowbytes(png_, info_);
    const auto expected = static_cast<size_t>(pixels.width * pixels.channels) * (pixels.is_16_bits ? 2 : 1);
    check_internal(row_bytes == expected, source_, ": a row of a PNG has ", row_bytes, " bytes, not ", expected);
    uint8_t* const bytes = pixels.allocate(row_bytes * static_cast<size_t>(pixels.height));
    std::vector<png_bytep> rows(static_cast<size_t>(pixels.height));
    for (size_t y = 0; y < rows.size(); ++y) rows[y] = bytes + y * row_bytes;
    png_bytepp first = rows.data();
    guarded([this, first] {
      png_read_image(png_, first);
      png_read_end(png_, info_);
    });
    if (options_.apply_exif_orientation) pixels.orientation = orientation();
    return pixels;
  }

 private:
  template <class Step>
  void guarded(const Step& step) {
    if (setjmp(png_jmpbuf(png_))) fail(ErrorCode::kDataLoss, source_, ": damaged PNG: ", reader_.message);
    step();
  }

  // Converts to 8 or 16 bits and to the channels of the mode. It owns nothing, because libpng may jump out of it.
  void set_transforms() {
    const int color = png_get_color_type(png_, info_), depth = png_get_bit_depth(png_, info_);
    const bool is_palette = color == PNG_COLOR_TYPE_PALETTE, has_color = (color & PNG_COLOR_MASK_COLOR) != 0;
    const bool has_alpha = (color & PNG_COLOR_MASK_ALPHA) != 0, has_trns = png_get_valid(png_, info_, PNG_INFO_tRNS);
    const ImageMode mode = options_.mode;
    const bool is_unchanged = mode == ImageMode::kUnchanged;
    const bool wants_alpha = is_unchanged ? has_alpha || (is_palette && has_trns)
                                          : mode == ImageMode::kGrayAlpha || mode == ImageMode::kRGBAlpha;
    const bool wants_color = is_unchanged ? has_color : mode == ImageMode::kRGB || mode == ImageMode::kRGBAlpha;
    if (depth == 16 && !options_.keep_16_bits) png_set_scale_16(png_);
    if (depth == 16 && options_.keep_16_bits && std::endian::native == std::endian::little) png_set_swap(png_);
    if (is_palette) png_set_palette_to_rgb(png_);
    if (!has_color && depth < 8) png_set_expand_gray_1_2_4_to_8(png_);
    if (has_trns && wants_alpha) png_set_tRNS_to_alpha(png_);
    const bool comes_with_alpha = has_alpha || has_trns;
    if (wants_alpha && !comes_with_alpha) png_set_add_alpha(png_, 0xffff, PNG_FILLER_AFTER);
    // Expanding a palette also expands its transparency.
    if (!wants_alpha && (has_alpha || (is_palette && has_trns))) png_set_strip_alpha(png_);
    if (wants_color && !has_color) png_set_gray_to_rgb(png_);
    if (!wants_color && has_color) png_set_rgb_to_gray(png_, 1, 0.2989, 0.587);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
  }

  int orientation() {
    png_uint_32 size = 0;
    png_bytep data = nullptr;
    if (!png_get_eXIf_1(png_, info_, &size, &data) || !data) return 1;
    return exif_orientation({reinterpret_cast<const char*>(data), size});
  }

  const ImageOptions& options_;
  const std::string& source_;
  Reader reader_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

ImageSize read_png_size(std::string_view bytes, const std::string& source) {
  // The signature, a length and "IHDR"; then width and height. libpng reads all chunks before the pixels.
  constexpr size_t kType = 12, kWidth = 16, kHeight = 20, kEnd = 24;
  if (bytes.size() < kEnd) fail(ErrorCode::kDataLoss, source, ": damaged PNG: the image is truncated");
  if (bytes.substr(kType, 4) != "IHDR") fail(ErrorCode::kDataLoss, source, ": damaged PNG: Missing IHDR before others");
  const auto number_at = [&](size_t at) {
    int64_t number = 0;
    for (size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<uint8_t>(bytes[at + i]);
    return number;
  };
  return {number_at(kHeight), number_at(kWidth)};
}

Pixels decode_png(std::string_view bytes, const ImageOptions& options, const std::string& source) {
  return PngDecoder(bytes, options, source).decode();
}

}  // namespace tensord::vision
