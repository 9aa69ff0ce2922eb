#include "server/http/compression.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>

#include "core/base/error.h"
#include "server/http/answer_text.h"

namespace tensord::server {
namespace {

constexpr int kWindowBits = 15, kGzip = 16;
constexpr uint64_t kPieceBytes = 1 << 20;
constexpr size_t kDeflateBytes = 16 << 10;
constexpr int kLevel = 1;  // deflate level: higher ones cost more time than they save bytes

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

// Parses "gzip;q=0.8"; returns a negative number if malformed.
double quality_of(std::string_view parameters) {
  if (parameters.empty()) return 1;
  parameters = trimmed(parameters);
  if (!parameters.starts_with("q=")) return -1;
  parameters.remove_prefix(2);
  double quality = -1;
  const auto [end, error] = std::from_chars(parameters.data(), parameters.data() + parameters.size(), quality);
  return error == std::errc() && end == parameters.data() + parameters.size() && quality >= 0 && quality <= 1 ? quality
                                                                                                              : -1;
}

[[noreturn]] void fail_unpacked(uint64_t max_bytes) {
  fail(ErrorCode::kInvalidArgument, "Decompressed data size exceeds the maximum allowed value of ", max_bytes,
       " bytes. Use --http-max-input-size to increase the limit.");
}

struct Inflater {
  explicit Inflater(Coding coding) {
    check(inflateInit2(&stream, kWindowBits + (coding == Coding::kGzip ? kGzip : 0)) == Z_OK,
          "the request cannot be unpacked");
  }
  ~Inflater() { inflateEnd(&stream); }
  z_stream stream{};
};

struct Deflater {
  explicit Deflater(Coding coding) {
    const int code = deflateInit2(&stream, kLevel, Z_DEFLATED, kWindowBits + (coding == Coding::kGzip ? kGzip : 0), 8,
                                  Z_DEFAULT_STRATEGY);
    check_internal(code == Z_OK, "the answer cannot be packed");
  }
  ~Deflater() { deflateEnd(&stream); }

  void add(std::string_view bytes, int flush, AnswerText& out) {
    std::array<char, kDeflateBytes> packed;
    do {
      const size_t part = std::min<size_t>(bytes.size(), INT_MAX);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream.avail_in = static_cast<uInt>(part);
      const bool is_last = part == bytes.size();
      do {
        stream.next_out = reinterpret_cast<Bytef*>(packed.data());
        stream.avail_out = static_cast<uInt>(packed.size());
        ::deflate(&stream, is_last ? flush : Z_NO_FLUSH);
        out.append({packed.data(), packed.size() - stream.avail_out});
      } while (stream.avail_out == 0);
      bytes.remove_prefix(part);
    } while (!bytes.empty());
  }
  z_stream stream{};
};

}  // namespace

const char* to_string(Coding coding) {
  return coding == Coding::kGzip ? "gzip" : coding == Coding::kDeflate ? "deflate" : "identity";
}

Coding request_coding(std::string_view content_encoding) {
  if (content_encoding.empty()) return Coding::kIdentity;
  for (const Coding coding : {Coding::kIdentity, Coding::kDeflate, Coding::kGzip}) {
    if (is_same_name(content_encoding, to_string(coding))) return coding;
  }
  fail(ErrorCode::kUnimplemented, "Unsupported compression type");
}

Coding preferred_coding(std::string_view accept_encoding) {
  Coding best = Coding::kIdentity;
  double best_quality = 0;
  while (!accept_encoding.empty()) {
    const size_t comma = accept_encoding.find(',');
    const std::string_view part = trimmed(accept_encoding.substr(0, comma));
    accept_encoding = comma == std::string_view::npos ? std::string_view() : accept_encoding.substr(comma + 1);
    const size_t semicolon = part.find(';');
    const double quality =
        quality_of(semicolon == std::string_view::npos ? std::string_view() : part.substr(semicolon + 1));
    for (const Coding coding : {Coding::kIdentity, Coding::kDeflate, Coding::kGzip}) {
      if (quality > best_quality && is_same_name(trimmed(part.substr(0, semicolon)), to_string(coding))) {
        best = coding;
        best_quality = quality;
      }
    }
  }
  return best;
}

BodyText inflate_body(Coding coding, const std::vector<std::span<const uint8_t>>& packed, uint64_t max_bytes,
                      const HttpMemoryQuota& quota, std::vector<std::shared_ptr<const void>>& holds) {
  Inflater inflater(coding);
  z_stream& stream = inflater.stream;
  BodyText out;
  bool is_over = false, is_full = false;
  Bytef one_more = 0;
  for (const auto& piece : packed) {
    stream.next_in = const_cast<Bytef*>(piece.data());
    stream.avail_in = static_cast<uInt>(piece.size());
    while (stream.avail_in > 0 || (stream.avail_out == 0 && !is_over && !out.empty())) {
      check(!is_over, "the request has bytes after the end of the compressed data");
      if (stream.avail_out == 0) {
        if (is_full) fail_unpacked(max_bytes);
        const size_t used = out.size();
        if (used == max_bytes) {
          // One extra byte of output shows whether there is more.
          is_full = true;
          stream.next_out = &one_more;
          stream.avail_out = 1;
        } else {
          const uint64_t more = std::min(std::max<uint64_t>(kPieceBytes / 16, used), max_bytes - used);
          // Growing the buffer copies it, so both buffers exist for a while and are charged.
          const std::shared_ptr<const void> copied = quota && used != 0 ? quota(used) : nullptr;
          if (quota) holds.push_back(quota(more));
          out.resize(used + more);
          stream.next_out = reinterpret_cast<Bytef*>(out.data() + used);
          stream.avail_out = static_cast<uInt>(more);
        }
      }
      const int code = ::inflate(&stream, Z_NO_FLUSH);
      if (code == Z_STREAM_END) {
        is_over = true;
      } else if (code == Z_BUF_ERROR && stream.avail_in == 0) {
        break;  // all input was decompressed
      } else {
        check(code == Z_OK, "the request cannot be unpacked: ", stream.msg ? stream.msg : "it is damaged");
      }
    }
  }
  check(is_over, "the request cannot be unpacked: its end is missing");
  if (is_full && stream.avail_out == 0) fail_unpacked(max_bytes);
  if (!is_full) out.erase(out.size() - stream.avail_out);
  return out;
}

void deflate_answer(Coding coding, const HttpMemoryQuota& quota, HttpAnswer& answer) {
  if (coding == Coding::kIdentity) return;
  Deflater deflater(coding);
  AnswerText packed(quota);
  for (HttpPiece& piece : answer.body) {
    deflater.add(piece.text, Z_NO_FLUSH, packed);
    deflater.add({reinterpret_cast<const char*>(piece.memory.data()), piece.memory.size()}, Z_NO_FLUSH, packed);
    piece = {};
  }
  deflater.add({}, Z_FINISH, packed);
  answer.body = packed.take();
  answer.headers.push_back({"Content-Encoding", to_string(coding)});
}

}  // namespace tensord::server
