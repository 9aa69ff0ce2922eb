#include "server/http/answer_text.h"

#include <algorithm>

#include "core/base/error.h"

namespace tensord::server {
namespace {

// The first block is small, as most answers are, and counted with the answer; the next ones are as large as all before.
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
