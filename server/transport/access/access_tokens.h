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

// Looks at every byte, so that the time says nothing about where two texts differ.
bool is_same_secret(std::string_view given, std::string_view wanted);

// Tokens, and the groups of calls that each opens. A text of lines `GROUP[,GROUP…] TOKEN` or `all TOKEN`; empty lines
// and those that begin with # are left out.
class TokenTable {
 public:
  // Throws Error{kInvalidArgument} naming the line.
  static TokenTable parse(const std::string& text);
  enum class Answer { kOpen, kUnknownToken, kOtherGroups };
  // Compares with every token, whichever fits.
  Answer find(std::string_view token, CallGroup group) const;

 private:
  std::vector<std::pair<std::string, uint32_t>> groups_of_;  // bits by CallGroup
};

// The table of a file, which is read again when the file has changed. Thread-safe.
class TokenFile {
 public:
  // Throws Error{kInvalidArgument} when it cannot be read.
  explicit TokenFile(std::string path);
  // As the file was at most a second ago. A file that has become unreadable or wrong is logged, and the tokens stay.
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
