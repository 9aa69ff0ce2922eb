#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tensord::server {

// The header of an HTTP/2 frame (RFC 9113, section 4.1).
struct FrameHead {
  enum Type : uint8_t {
    kData = 0,
    kHeaders = 1,
    kPriority = 2,
    kResetStream = 3,
    kSettings = 4,
    kPing = 6,
    kWindowUpdate = 8,
    kContinuation = 9,
  };
  static constexpr uint8_t kEndStream = 1;   // of kData and kHeaders
  static constexpr uint8_t kAck = 1;         // of kSettings and kPing
  static constexpr uint8_t kEndHeaders = 4;  // of kHeaders and kContinuation

  uint32_t length = 0;
  uint8_t type = 0;
  uint8_t flags = 0;
  uint32_t stream = 0;
  uint32_t error_code = 0;  // of kResetStream

  bool has(uint8_t flag) const { return (flags & flag) != 0; }
};

// Finds the frames in one direction of a connection, however its bytes are split. Stores no payload. Bytes that do not
// start as HTTP/2 have no frames. Not thread-safe.
class FrameReader {
 public:
  // Clients send the preface before their first frame.
  explicit FrameReader(bool is_from_client) : preface_left_(is_from_client ? kPreface.size() : 0) {}

  // Calls visit(const FrameHead&) for each frame whose header ends in these bytes; for kResetStream, whose error code
  // does.
  template <class Visit>
  void read(const uint8_t* data, size_t size, Visit&& visit) {
    while (size > 0 && !is_foreign_) {
      const size_t taken = preface_left_ > 0 ? match_preface(data, size)
                           : skip_left_ > 0  ? skip(size)
                                             : take_head(data, size, visit);
      data += taken;
      size -= taken;
    }
  }

 private:
  static constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  static constexpr size_t kHeadBytes = 9;
  static constexpr size_t kErrorCodeBytes = 4;

  size_t match_preface(const uint8_t* data, size_t size) {
    const size_t taken = std::min(size, preface_left_);
    is_foreign_ = std::memcmp(data, kPreface.data() + kPreface.size() - preface_left_, taken) != 0;
    preface_left_ -= taken;
    return taken;
  }

  size_t skip(size_t size) {
    const size_t taken = std::min<size_t>(size, skip_left_);
    skip_left_ -= static_cast<uint32_t>(taken);
    return taken;
  }

  template <class Visit>
  size_t take_head(const uint8_t* data, size_t size, Visit&& visit) {
    const size_t begin = head_bytes_;
    size_t wanted = kHeadBytes;
    const auto take = [&] {
      const size_t taken = std::min(begin + size, wanted);
      if (taken > head_bytes_)
        std::memcpy(head_.data() + head_bytes_, data + (head_bytes_ - begin), taken - head_bytes_);
      head_bytes_ = std::max(head_bytes_, taken);
      return head_bytes_ >= wanted;
    };
    if (!take()) return size;
    FrameHead head = parse();
    if (head.type == FrameHead::kResetStream && head.length == kErrorCodeBytes) {
      wanted += kErrorCodeBytes;
      if (!take()) return size;
      head.error_code = number(head_.data() + kHeadBytes, kErrorCodeBytes);
    }
    skip_left_ = head.length - static_cast<uint32_t>(wanted - kHeadBytes);
    head_bytes_ = 0;
    visit(static_cast<const FrameHead&>(head));
    return wanted - begin;
  }

  static uint32_t number(const uint8_t* data, size_t bytes) {
    uint32_t out = 0;
    for (size_t i = 0; i < bytes; ++i) out = out << 8 | data[i];
    return out;
  }

  FrameHead parse() const {
    return {.length = number(head_.data(), 3),
            .type = head_[3],
            .flags = head_[4],
            .stream = number(head_.data() + 5, 4) & 0x7fffffffU,
            .error_code = 0};
  }

  size_t preface_left_;
  bool is_foreign_ = false;
  uint32_t skip_left_ = 0;  // of the payload
  size_t head_bytes_ = 0;   // bytes of head_ read so far
  std::array<uint8_t, kHeadBytes + kErrorCodeBytes> head_{};
};

}  // namespace tensord::server
