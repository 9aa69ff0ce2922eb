// libjpeg reports errors with longjmp. The jump skips only frames of libjpeg and of the lambdas below, which own
// nothing.
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <jerror.h>
#include <jpeglib.h>

#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/vision/decoders.h"

namespace tensord::vision {
namespace {

// A scan takes time for all pixels, and may have a few bytes only. Encoders write about ten.
constexpr int kMaxScans = 64;
// Of the header, so that reading it takes a bounded time. A file has tens of them, hundreds with large metadata.
constexpr int kMaxSegments = 10'000;
constexpr size_t kMaxFillBytes = 1 << 20;  // between them

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
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > kMaxScans) {
    jump_out(info, "it has more than 64 scans; save it with fewer, as a baseline JPEG");
  }
  if (is_work_cancelled()) jump_out(info, "the work was cancelled");
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

  void read_header() {
    guarded([this] {
      jpeg_create_decompress(&info_);
      progress_.progress_monitor = on_progress;
      info_.progress = &progress_;
      jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size());
      if (options_.apply_exif_orientation) jpeg_save_markers(&info_, JPEG_APP0 + 1, 0xffff);
      jpeg_read_header(&info_, TRUE);
    });
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
    if (setjmp(errors_.jump)) {
      check_work_cancelled();
      fail(ErrorCode::kDataLoss, source_, ": damaged JPEG: ", errors_.message);
    }
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

// Finds the frame header by the lengths of the segments. libjpeg looks at every byte before it.
class JpegSizeReader {
 public:
  JpegSizeReader(std::string_view bytes, const std::string& source) : bytes_(bytes), source_(source) {}

  ImageSize read() {
    for (int i = 0; i < kMaxSegments; ++i) {
      if (!skip_to_marker()) return at_end("the image is truncated");
      const auto marker = static_cast<uint8_t>(bytes_[at_++]);
      if (marker == kEnd) return at_end("JPEG datastream contains no image");
      if (marker <= 1 || (marker >= kFirstRestart && marker <= kStart)) continue;
      const size_t length = number_at(at_);
      if (length < 2 || length > bytes_.size() - at_) return at_end("the image is truncated");
      const std::string_view segment = bytes_.substr(at_ + 2, length - 2);
      if (marker == kScan) return at_scan(segment);
      const bool is_frame = marker >= 0xc0 && marker < 0xd0 && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
      if (is_frame) read_frame(marker, segment);
      at_ += length;
    }
    damaged(concat("its header has more than ", kMaxSegments, " segments"));
  }

 private:
  static constexpr uint8_t kFirstRestart = 0xd0, kStart = 0xd8, kEnd = 0xd9, kScan = 0xda;

  // Moves behind the next 0xff. Other bytes between segments are skipped, as by libjpeg, but not without end.
  bool skip_to_marker() {
    const std::string_view near = bytes_.substr(0, std::min(bytes_.size(), at_ + fill_left_));
    size_t at = near.find('\xff', at_);
    if (at != near.npos) at = near.find_first_not_of('\xff', at);
    if (at == near.npos && near.size() < bytes_.size())
      damaged(concat("its header has more than ", kMaxFillBytes, " bytes between segments"));
    if (at == near.npos) return false;
    fill_left_ -= at - at_;
    at_ = at;
    return true;
  }

  [[noreturn]] void damaged(const std::string& what) const {
    fail(ErrorCode::kDataLoss, source_, ": damaged JPEG: ", what);
  }

  // Two bytes; 0 if they are not there.
  size_t number_at(size_t at) const {
    if (at + 2 > bytes_.size()) return 0;
    return static_cast<size_t>(static_cast<uint8_t>(bytes_[at])) << 8 | static_cast<uint8_t>(bytes_[at + 1]);
  }

  void read_frame(uint8_t marker, std::string_view frame) {
    components_ = frame.size() < 6 ? 0 : static_cast<uint8_t>(frame[5]);
    if (has_frame_ || components_ == 0 || frame.size() < 6 + 3 * components_) damaged("its frame header is wrong");
    has_frame_ = true;
    is_progressive_ = (marker & 3) == 2;
    size_ = {static_cast<int64_t>(number_at(at_ + 3)), static_cast<int64_t>(number_at(at_ + 5))};
    int64_t samples = 0, most = 1;  // sums of products of sampling factors
    for (size_t i = 0; i < components_; ++i) {
      const auto factors = static_cast<uint8_t>(frame[7 + 3 * i]);
      const int64_t product = int64_t{factors >> 4} * (factors & 15);
      samples += product;
      most = std::max(most, product);
    }
    size_.decoder_bytes = static_cast<uint64_t>(size_.height * size_.width * samples / most) * sizeof(JCOEF);
  }

  // libjpeg keeps the coefficients of all pixels if they come in several scans.
  ImageSize at_scan(std::string_view scan) {
    if (!has_frame_) damaged("a scan comes before its frame header");
    const bool has_all = !scan.empty() && static_cast<uint8_t>(scan[0]) == components_;
    if (has_all && !is_progressive_) size_.decoder_bytes = 0;
    return size_;
  }
  ImageSize at_end(const char* what) const {
    if (!has_frame_) damaged(what);
    return size_;
  }

  const std::string_view bytes_;
  const std::string& source_;
  size_t at_ = 2;  // behind the first marker
  size_t fill_left_ = kMaxFillBytes;
  size_t components_ = 0;
  bool has_frame_ = false, is_progressive_ = false;
  ImageSize size_{0, 0};
};

}  // namespace

ImageSize read_jpeg_size(std::string_view bytes, const std::string& source) {
  return JpegSizeReader(bytes, source).read();
}

Pixels decode_jpeg(std::string_view bytes, const ImageOptions& options, const std::string& source) {
  return JpegDecoder(bytes, options, source).decode();
}

}  // namespace tensord::vision
