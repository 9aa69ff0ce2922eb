// libjpeg reports errors with longjmp. The jump skips only frames of libjpeg and of the lambdas below, which own
// nothing.
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <jerror.h>
#include <jpeglib.h>

#include "core/base/error.h"
#include "core/vision/decoders.h"

namespace tensord::vision {
namespace {

// A file with few bytes per scan could keep the decoder busy for minutes.
constexpr int kMaxScans = 500;

struct ErrorHandler {
  jpeg_error_mgr base;  // first member, because libjpeg gets a pointer to it
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void jump_out(j_common_ptr info, const char* message = nullptr) {
  auto* handler = reinterpret_cast<ErrorHandler*>(info->err);
  if (message)
    std::snprintf(handler->message, sizeof handler->message, "%s", message);
  else
    info->err->format_message(info, handler->message);
  std::longjmp(handler->jump, 1);
}

// A warning ends the decoding if libjpeg would make up pixels after it. Other warnings, such as extra bytes between
// markers, are harmless.
void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_JPEG_EOF: jump_out(info, "the image is truncated");
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_MUST_RESYNC: jump_out(info);
    default: return;
  }
}

void on_progress(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > kMaxScans) jump_out(info, "it has too many scans");
}

class JpegDecoder {
 public:
  JpegDecoder(std::string_view bytes, const ImageOptions& options, const std::string& source)
      : bytes_(bytes), options_(options), source_(source) {
    std::memset(&info_, 0, sizeof info_);
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = [](j_common_ptr info) { jump_out(info); };
    errors_.base.emit_message = on_message;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&info_); }  // also valid for a decompressor that was never created
  JpegDecoder(const JpegDecoder&) = delete;

  ImageSize read_header() {
    guarded([this] {
      jpeg_create_decompress(&info_);
      progress_.progress_monitor = on_progress;
      info_.progress = &progress_;
      jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size());
      if (options_.apply_exif_orientation) jpeg_save_markers(&info_, JPEG_APP0 + 1, 0xffff);
      jpeg_read_header(&info_, TRUE);
    });
    return {info_.image_height, info_.image_width};
  }

  Pixels decode() {
    read_header();
    check_size(info_.image_width, info_.image_height, options_, source_);
    Pixels pixels;
    choose_colors(pixels);
    guarded([this] { jpeg_start_decompress(&info_); });
    pixels.height = info_.output_height;
    pixels.width = info_.output_width;
    read_rows(pixels);
    if (options_.apply_exif_orientation) pixels.orientation = orientation();
    guarded([this] { jpeg_finish_decompress(&info_); });  // this drops the markers
    return pixels;
  }

 private:
  template <class Step>
  void guarded(const Step& step) {
    if (setjmp(errors_.jump)) fail(ErrorCode::kDataLoss, source_, ": damaged JPEG: ", errors_.message);
    step();
  }

  void choose_colors(Pixels& pixels) {
    const auto refuse = [&](const char* what) { fail(ErrorCode::kUnimplemented, source_, ": ", what); };
    if (info_.data_precision != 8) refuse("a JPEG of other than 8 bits is not read");
    is_cmyk_ = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    switch (options_.mode) {
      case ImageMode::kUnchanged:
        pixels.channels = info_.num_components;
        if (pixels.channels == 2 || pixels.channels > 4) refuse("a JPEG of so many components is not read");
        is_cmyk_ = false;
        return;
      case ImageMode::kGray: pixels.channels = 1; break;
      case ImageMode::kRGB: pixels.channels = 3; break;
      default: refuse("a JPEG has no alpha; the modes unchanged, gray and RGB are there");
    }
    const bool is_known = info_.jpeg_color_space != JCS_UNKNOWN;
    if (!is_known) refuse("a JPEG of unknown colors has no mode but unchanged");
    info_.out_color_space = is_cmyk_ ? JCS_CMYK : pixels.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  }

  void read_rows(Pixels& pixels) {
    check_internal(is_cmyk_ || info_.output_components == pixels.channels, source_, ": channels differ");
    const auto row_bytes = static_cast<size_t>(pixels.width * pixels.channels);
    uint8_t* const bytes = pixels.allocate(row_bytes * static_cast<size_t>(pixels.height));
    std::vector<uint8_t> inks(is_cmyk_ ? static_cast<size_t>(pixels.width) * 4 : 0);
    for (int64_t y = 0; y < pixels.height; ++y) {
      uint8_t* row = bytes + static_cast<size_t>(y) * row_bytes;
      JSAMPROW to = is_cmyk_ ? inks.data() : row;
      guarded([this, to] {
        JSAMPROW rows[1] = {to};
        jpeg_read_scanlines(&info_, rows, 1);
      });
      if (is_cmyk_) from_inks(inks, pixels.channels, row);
    }
  }

  // Adobe's files store 255 for no ink, other files 0.
  void from_inks(const std::vector<uint8_t>& inks, int64_t channels, uint8_t* row) const {
    const bool is_inverted = info_.saw_Adobe_marker;
    for (size_t i = 0; i + 3 < inks.size(); i += 4) {
      int light[4];
      for (size_t c = 0; c < 4; ++c) light[c] = is_inverted ? inks[i + c] : 255 - inks[i + c];
      const int r = light[3] * light[0] / 255, g = light[3] * light[1] / 255, b = light[3] * light[2] / 255;
      if (channels == 1) {
        *row++ = static_cast<uint8_t>((r * 4899 + g * 9617 + b * 1868 + 8192) >> 14);
        continue;
      }
      *row++ = static_cast<uint8_t>(r);
      *row++ = static_cast<uint8_t>(g);
      *row++ = static_cast<uint8_t>(b);
    }
  }

  int orientation() const {
    constexpr std::string_view kExif("Exif\0\0", 6);
    for (const jpeg_marker_struct* marker = info_.marker_list; marker; marker = marker->next) {
      const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
      if (data.starts_with(kExif)) return exif_orientation(data.substr(kExif.size()));
    }
    return 1;
  }

  const std::string_view bytes_;
  const ImageOptions& options_;
  const std::string& source_;
  jpeg_decompress_struct info_;
  jpeg_progress_mgr progress_ = {};
  ErrorHandler errors_ = {};
  bool is_cmyk_ = false;  // the CMYK pixels must be converted to another color space
};

}  // namespace

ImageSize read_jpeg_size(std::string_view bytes, const std::string& source) {
  const ImageOptions options;
  return JpegDecoder(bytes, options, source).read_header();
}

Pixels decode_jpeg(std::string_view bytes, const ImageOptions& options, const std::string& source) {
  return JpegDecoder(bytes, options, source).decode();
}

}  // namespace tensord::vision
