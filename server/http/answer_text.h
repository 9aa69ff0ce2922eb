#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/message.h"

namespace tensord::server {

// The text of an answer as it is written: in blocks, each counted by the quota before it is allocated, so that nothing
// is ever copied to grow. Writing throws Error: kResourceExhausted without room, kCancelled when nobody waits any more.
class AnswerText {
 public:
  AnswerText() = default;  // counts nothing
  explicit AnswerText(HttpMemoryQuota quota, std::function<bool()> is_gone = {})
      : quota_(std::move(quota)), is_gone_(std::move(is_gone)) {}

  void append(std::string_view text) {
    if (text.size() > room_) return append_in_parts(text);
    blocks_.back().text.append(text);
    room_ -= text.size();
    size_bytes_ += text.size();
  }
  AnswerText& operator+=(std::string_view text) {
    append(text);
    return *this;
  }
  AnswerText& operator+=(char letter) {
    append({&letter, 1});
    return *this;
  }

  size_t size_bytes() const { return size_bytes_; }
  // The blocks; what is counted goes with them.
  std::vector<HttpPiece> take();
  // All of it in one piece; for what is known to be short.
  std::string text() const;

 private:
  void append_in_parts(std::string_view text);
  void add_block();

  HttpMemoryQuota quota_;
  std::function<bool()> is_gone_;
  std::vector<HttpPiece> blocks_;
  size_t size_bytes_ = 0;
  size_t room_ = 0;  // of the last block
};

}  // namespace tensord::server
