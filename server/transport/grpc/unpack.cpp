#include "server/transport/grpc/unpack.h"

#include <grpc/impl/codegen/compression_types.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <zlib.h>

#include <algorithm>
#include <climits>
#include <vector>

#include "core/base/error.h"

namespace tensord::server {
namespace {

// Sizes of the pieces of the result. Each piece is twice as large as the previous one, so that small messages waste
// little and large ones have few pieces.
constexpr uint64_t kMinPieceBytes = 1 << 10;
constexpr uint64_t kFirstPieceBytes = 1 << 20;  // upper bound
constexpr uint64_t kMaxPieceBytes = 8 << 20;

// A message may decompress to this size, or to this multiple of its own size if that is larger. A higher ratio costs a
// client nothing and the server seconds.
constexpr uint64_t kMaxOfAnyBytes = uint64_t{64} << 20;
constexpr uint64_t kMaxTimes = 100;

// Reads the compression flag of a message, which only gRPC's own reader may access.
class MessageProbe final : public grpc::ProtoBufferReader {
 public:
  using ProtoBufferReader::ProtoBufferReader;
  grpc_compression_algorithm algorithm() { return reader()->buffer_in->data.raw.compression; }
};

class Inflater {
 public:
  Inflater(bool is_gzip, uint64_t packed_bytes, const RequestLimits& limits, RequestLimits::Admission& admission)
      : max_bytes_(std::max(kMaxOfAnyBytes, kMaxTimes * packed_bytes)),
        limits_(limits),
        admission_(admission),
        next_bytes_(std::clamp(4 * packed_bytes, kMinPieceBytes, kFirstPieceBytes)) {
    constexpr int kWindowBits = 15;
    constexpr int kGzip = 16;
    inflateInit2(&stream_, kWindowBits | (is_gzip ? kGzip : 0));  // a failure here shows up in inflate() too
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  void add(const grpc::Slice& packed) {
    stream_.next_in = const_cast<Bytef*>(packed.begin());
    stream_.avail_in = static_cast<uInt>(packed.size());
    // The data is complete before the checksum at its end was read.
    while (stream_.avail_in > 0) {
      check(!is_over_, "the request has bytes after the end of the compressed data");
      if (stream_.avail_out == 0) add_piece();
      const int code = inflate(&stream_, Z_NO_FLUSH);
      is_over_ = code == Z_STREAM_END;
      check(is_over_ || code == Z_OK, "the request cannot be unpacked: ", stream_.msg ? stream_.msg : "it is damaged");
    }
  }

  grpc::ByteBuffer finish() {
    check(is_over_, "the request cannot be unpacked: its end is missing");
    check_size(allocated_bytes_ - stream_.avail_out);
    if (!pieces_.empty()) pieces_.back() = pieces_.back().sub(0, pieces_.back().size() - stream_.avail_out);
    return {pieces_.data(), pieces_.size()};
  }

 private:
  void add_piece() {
    check_size(allocated_bytes_);
    uint64_t bytes = next_bytes_;
    // Allows one byte more than the limit, which shows that the limit is exceeded.
    if (limits_.max_message_bytes() != 0) bytes = std::min(bytes, limits_.max_message_bytes() + 1 - allocated_bytes_);
    bytes = std::min(bytes, max_bytes_ + 1 - allocated_bytes_);
    admission_.grow(bytes);
    pieces_.emplace_back(bytes);
    stream_.next_out = const_cast<Bytef*>(pieces_.back().begin());
    stream_.avail_out = static_cast<uInt>(bytes);
    allocated_bytes_ += bytes;
    next_bytes_ = std::min(2 * next_bytes_, kMaxPieceBytes);
  }

  void check_size(uint64_t bytes) const {
    if (bytes > max_bytes_) {
      fail(ErrorCode::kResourceExhausted, "the request unpacks to more than ", kMaxTimes, " times its size");
    }
    const uint64_t max = limits_.max_message_bytes();
    if (max == 0 || bytes <= max) return;
    fail(ErrorCode::kResourceExhausted, "the request unpacks to more than the ", max,
         " bytes that --grpc-max-message-size and --client-memory-quota allow");
  }

  const uint64_t max_bytes_;
  const RequestLimits& limits_;
  RequestLimits::Admission& admission_;
  uint64_t next_bytes_;
  uint64_t allocated_bytes_ = 0;
  bool is_over_ = false;
  z_stream stream_{};
  std::vector<grpc::Slice> pieces_;
};

}  // namespace

void unpack(grpc::ByteBuffer& message, const RequestLimits& limits, RequestLimits::Admission& admission) {
  if (!message.Valid()) return;
  const grpc_compression_algorithm algorithm = MessageProbe(&message).algorithm();
  if (algorithm == GRPC_COMPRESS_NONE) return;
  std::vector<grpc::Slice> packed;
  check(message.Dump(&packed).ok(), "the request cannot be read");
  Inflater inflater(algorithm == GRPC_COMPRESS_GZIP, message.Length(), limits, admission);
  for (const grpc::Slice& slice : packed) inflater.add(slice);
  grpc::ByteBuffer plain = inflater.finish();
  message.Swap(&plain);
}

}  // namespace tensord::server
