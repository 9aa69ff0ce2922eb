#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/message.h"

namespace tensord::server {

// Builds the text of an answer in blocks. Each block is charged to the quota before its allocation, so growing never
// copies. Writing throws Error: kResourceExhausted if there is no memory, kCancelled if the client is gone.
class AnswerText {
 public:
  AnswerText() = default;  // without a quota
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
  // Moves the blocks out with their charges.
  std::vector<HttpPiece> take();
  // The whole text in one string; for short texts.
  std::string text() const;

 private:
  void append_in_parts(std::string_view text);
  void add_block();

  HttpMemoryQuota quota_;
  std::function<bool()> is_gone_;
  std::vector<HttpPiece> blocks_;
  size_t size_bytes_ = 0;
  size_t room_ = 0;  // free bytes in the last block
};

}  // namespace tensord::server
