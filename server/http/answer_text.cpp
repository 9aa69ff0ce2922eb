#include "server/http/answer_text.h"

#include <algorithm>

#include "core/base/error.h"

namespace tensord::server {
namespace {

// Most answers are small, and the first block is charged with the answer. Each further block is as large as all blocks
// before it.
constexpr size_t kFirstTextBytes = 1 << 10;
constexpr size_t kMinBlockBytes = 16 << 10, kMaxTextBlockBytes = 1 << 20;

}  // namespace

void AnswerText::add_block() {
  if (is_gone_ && is_gone_()) fail(ErrorCode::kCancelled, "the client has gone");
  HttpPiece block;
  size_t bytes = kFirstTextBytes;
  if (!blocks_.empty()) {
    bytes = std::clamp(size_bytes_, kMinBlockBytes, kMaxTextBlockBytes);
    if (quota_) block.owner = quota_(bytes);
    block.is_charged = true;
  }
  block.text.reserve(bytes);
  room_ = bytes;
  blocks_.push_back(std::move(block));
}

void AnswerText::append_in_parts(std::string_view text) {
  while (!text.empty()) {
    if (room_ == 0) add_block();
    const size_t part = std::min(text.size(), room_);
    append(text.substr(0, part));
    text.remove_prefix(part);
  }
}

std::vector<HttpPiece> AnswerText::take() {
  size_bytes_ = room_ = 0;
  return std::exchange(blocks_, {});
}

std::string AnswerText::text() const {
  std::string out;
  out.reserve(size_bytes_);
  for (const HttpPiece& block : blocks_) out += block.text;
  return out;
}

}  // namespace tensord::server
