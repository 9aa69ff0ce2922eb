#pragma once

#include <absl/container/inlined_vector.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tensord::server {

// The bytes of a message as received, in one or more pieces that `owner` keeps alive. Immutable.
struct WireMessage {
  absl::InlinedVector<std::span<const uint8_t>, 4> pieces;  // no piece is empty
  size_t size_bytes = 0;
  std::shared_ptr<const void> owner;

  void add_piece(std::span<const uint8_t> piece) {
    if (piece.empty()) return;
    pieces.push_back(piece);
    size_bytes += piece.size();
  }
};

// Reads protobuf's wire format from a range of a message. Every read is bounds-checked and throws
// Error{kInvalidArgument} past the end, so a truncated message is rejected, never misread. Cheap to copy; the message
// must outlive all copies.
class WireReader {
 public:
  enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kStartGroup = 3, kEndGroup = 4, kFixed32 = 5 };
  struct Tag {
    uint32_t field = 0;
    WireType type = WireType::kVarint;
  };

  explicit WireReader(const WireMessage& message);

  size_t remaining() const { return remaining_; }
  bool at_end() const { return remaining_ == 0; }

  Tag read_tag();
  uint64_t read_varint() {
    // Fast path: most values have one byte and do not end their piece.
    if (remaining_ != 0 && piece_end_ - position_ > 1 && *position_ < 0x80) {
      --remaining_;
      return *position_++;
    }
    return read_long_varint();
  }
  uint32_t read_fixed32();
  uint64_t read_fixed64();
  // Reads a length and returns the range that follows; this reader moves past it.
  WireReader read_range();
  // Returns the next `count` bytes as a range; this reader moves past them.
  WireReader read_part(size_t count);
  // The range as a string. Throws if it is not UTF-8.
  std::string read_string();
  // The range as bytes.
  std::string read_bytes();
  // Skips a field with this tag. Groups may nest 32 deep.
  void skip(Tag tag, int depth = 0);

  // A pointer to the range if it is in one piece; otherwise null.
  const uint8_t* contiguous() const;
  // The pieces of the range; none is empty.
  std::vector<std::span<const uint8_t>> pieces() const;
  // Copies the next `count` bytes and moves past them.
  void copy_to(void* target, size_t count);
  void advance(size_t count) {
    if (count <= remaining_ && count < static_cast<size_t>(piece_end_ - position_)) {
      remaining_ -= count;
      position_ += count;
    } else {
      advance_pieces(count);
    }
  }

 private:
  uint64_t read_long_varint();
  void advance_pieces(size_t count);
  void next_piece();
  const WireMessage* message_;
  size_t piece_ = 0;
  const uint8_t* position_ = nullptr;
  const uint8_t* piece_end_ = nullptr;
  size_t remaining_ = 0;  // of the range
};

}  // namespace tensord::server
