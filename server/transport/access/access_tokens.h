#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/mutex.h"

#include "server/transport/access/call_group.h"

namespace tensord::server {

// Compares in constant time, so that timing does not reveal where two strings differ.
bool is_same_secret(std::string_view given, std::string_view wanted);

// Tokens and the groups of calls that each gives access to. Parsed from lines `GROUP[,GROUP…] TOKEN` or `all TOKEN`;
// empty lines and lines that start with # are ignored.
class TokenTable {
 public:
  // Throws Error{kInvalidArgument} naming the line.
  static TokenTable parse(const std::string& text);
  enum class Answer { kOpen, kUnknownToken, kOtherGroups };
  // Compares with every token, even after a match.
  Answer find(std::string_view token, CallGroup group) const;

 private:
  std::vector<std::pair<std::string, uint32_t>> groups_of_;  // bits by CallGroup
};

// The tokens of a file, which is read again when it changes. Thread-safe.
class TokenFile {
 public:
  // Throws Error{kInvalidArgument} if the file cannot be read.
  explicit TokenFile(std::string path);
  // The table, at most one second old. If the file becomes unreadable or malformed, that is logged and the old tokens
  // stay valid.
  std::shared_ptr<const TokenTable> table() const;

 private:
  void look() const;

  const std::string path_;
  mutable std::atomic<int64_t> next_look_ns_{0};
  mutable Mutex mutex_;
  mutable int64_t stamp_ TENSORD_GUARDED_BY(mutex_) = 0;  // of the file that was read
  mutable std::shared_ptr<const TokenTable> table_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
