#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/storage.h"
#include "server/http/body_text.h"
#include "server/http/chunk_reader.h"
#include "server/http/message.h"

namespace tensord::server {

// The body of a request, in the memory that it was received into. Moving it does not move that memory.
class HttpBody {
 public:
  std::vector<std::span<const uint8_t>> pieces() const;
  uint64_t size_bytes() const { return size_bytes_; }
  // The body in one piece; a body in several blocks is joined in `joined`.
  std::string_view whole(BodyText& joined) const;

 private:
  friend class BodyReceiver;
  struct Block {
    Storage memory;
    size_t begin = 0, size_bytes = 0;  // the used part
    std::shared_ptr<const void> hold;  // charge to the quota
    uint8_t* data() const { return static_cast<uint8_t*>(memory->data()) + begin; }
  };
  std::vector<Block> blocks_;
  uint64_t size_bytes_ = 0;
};

// The handler's instructions for a body, before it arrives.
struct BodyPlan {
  uint64_t max_bytes = 0;   // larger ones are rejected
  uint64_t aligned_at = 0;  // bodies of known length: place this byte at a multiple of 64
};

// Receives one body: of known length straight into one block of memory, chunked into blocks that are allocated as
// needed.
class BodyReceiver {
 public:
  // The status of the rejection; 0: it can be received.
  int start(const HttpHead& head, const BodyPlan& plan, const HttpMemoryQuota& quota);

  bool is_chunked() const { return chunks_.has_value(); }
  bool is_done() const { return is_done_; }
  // Where the next bytes go, for a body of known length.
  std::span<uint8_t> room();
  void add(size_t count);
  // Consumes bytes and returns how many; sets `status` if the body must be rejected.
  size_t take(std::string_view bytes, const HttpMemoryQuota& quota, int& status);
  // The reason for a status.
  std::string reason(int status) const;
  HttpBody finish() { return std::move(body_); }

 private:
  size_t take_chunks(std::string_view bytes, const HttpMemoryQuota& quota, int& status);
  bool add_block(uint64_t bytes, const HttpMemoryQuota& quota);

  HttpBody body_;
  std::optional<ChunkReader> chunks_;
  uint64_t max_bytes_ = 0;
  uint64_t room_bytes_ = 0;  // unused bytes of the last block
  bool is_done_ = false;
  bool has_too_many_chunks_ = false;
  std::string no_room_;  // the reason
};

}  // namespace tensord::server
