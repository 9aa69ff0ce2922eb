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

// The body of a request, where it was received. Moved, its memory stays where it is.
class HttpBody {
 public:
  std::vector<std::span<const uint8_t>> pieces() const;
  uint64_t size_bytes() const { return size_bytes_; }
  // In one piece: where it lies, or, of one that came in pieces, joined in `joined`.
  std::string_view whole(BodyText& joined) const;

 private:
  friend class BodyReceiver;
  struct Block {
    Storage memory;
    size_t begin = 0, size_bytes = 0;  // what is used of it
    std::shared_ptr<const void> hold;  // of the quota
    uint8_t* data() const { return static_cast<uint8_t*>(memory->data()) + begin; }
  };
  std::vector<Block> blocks_;
  uint64_t size_bytes_ = 0;
};

// What the handler says of a body before it comes.
struct BodyPlan {
  uint64_t max_bytes = 0;   // larger ones are refused
  uint64_t aligned_at = 0;  // the byte that shall lie at a multiple of 64, if the body has a length
};

// Receives one body: with a length straight into one piece of memory, in chunks into blocks that are taken as they
// are needed.
class BodyReceiver {
 public:
  // Status of the answer if it cannot be received; 0: it can.
  int start(const HttpHead& head, const BodyPlan& plan, const HttpMemoryQuota& quota);

  bool is_chunked() const { return chunks_.has_value(); }
  bool is_done() const { return is_done_; }
  // Where the next bytes go; of a body with a length.
  std::span<uint8_t> room();
  void add(size_t count);
  // Takes what it can of `bytes`; how many it used, or, in `status`, why it cannot go on.
  size_t take(std::string_view bytes, const HttpMemoryQuota& quota, int& status);
  // That status in words.
  std::string reason(int status) const;
  HttpBody finish() { return std::move(body_); }

 private:
  size_t take_chunks(std::string_view bytes, const HttpMemoryQuota& quota, int& status);
  bool add_block(uint64_t bytes, const HttpMemoryQuota& quota);

  HttpBody body_;
  std::optional<ChunkReader> chunks_;
  uint64_t max_bytes_ = 0;
  uint64_t room_bytes_ = 0;  // of the last block, not used yet
  bool is_done_ = false;
  bool has_too_many_chunks_ = false;
  std::string no_room_;  // why
};

}  // namespace tensord::server
