#include "server/transport/access/access_tokens.h"

#include <sys/stat.h>

#include <sstream>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/read_whole_file.h"

namespace tensord::server {
namespace {

constexpr int64_t kLookIntervalNs = 1'000'000'000;
constexpr uint32_t kAllGroups = (1u << kCallGroups) - 1;

uint32_t bit_of(CallGroup group) { return 1u << static_cast<int>(group); }

uint32_t parse_groups(const std::string& text) {
  if (text == "all") return kAllGroups;
  uint32_t groups = 0;
  std::istringstream names(text);
  for (std::string name; std::getline(names, name, ',');) groups |= bit_of(parse_call_group(name));
  return groups;
}

// A value that changes whenever the file changes; 0 if it does not exist.
int64_t stamp_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return 0;
  const int64_t time = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
  return time ^ (static_cast<int64_t>(status.st_ino) << 20) ^ status.st_size;
}

TokenTable read_table(const std::string& path) {
  const std::optional<std::string> text = read_whole_file(path);
  check(text.has_value(), "--access-tokens: cannot read ", path);
  return TokenTable::parse(*text);
}

}  // namespace

bool is_same_secret(std::string_view given, std::string_view wanted) {
  unsigned difference = given.size() == wanted.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i]) ^
                  static_cast<unsigned char>(wanted[wanted.empty() ? 0 : i % wanted.size()]);
  }
  return difference == 0;
}

TokenTable TokenTable::parse(const std::string& text) {
  TokenTable table;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line);
    std::string groups, token, rest;
    if (!(words >> groups) || groups.front() == '#') continue;
    check((words >> token) && !(words >> rest), "--access-tokens: line ", number, " must be GROUP,… TOKEN");
    try {
      table.groups_of_.emplace_back(token, parse_groups(groups));
    } catch (const Error& error) {
      fail(error.code(), "--access-tokens: line ", number, ": ", error.what());
    }
  }
  check(!table.groups_of_.empty(), "--access-tokens: there is no token in the file");
  return table;
}

TokenTable::Answer TokenTable::find(std::string_view token, CallGroup group) const {
  Answer answer = Answer::kUnknownToken;
  for (const auto& [known, groups] : groups_of_) {
    if (!is_same_secret(token, known)) continue;
    if (groups & bit_of(group)) {
      answer = Answer::kOpen;
    } else if (answer == Answer::kUnknownToken) {
      answer = Answer::kOtherGroups;
    }
  }
  return answer;
}

TokenFile::TokenFile(std::string path) : path_(std::move(path)) {
  stamp_ = stamp_of(path_);
  table_ = std::make_shared<const TokenTable>(read_table(path_));
  next_look_ns_ = Clock::system().now_ns() + kLookIntervalNs;
}

std::shared_ptr<const TokenTable> TokenFile::table() const {
  const int64_t now = Clock::system().now_ns();
  int64_t next = next_look_ns_.load(std::memory_order_relaxed);
  if (now >= next && next_look_ns_.compare_exchange_strong(next, now + kLookIntervalNs)) look();
  const MutexLock lock(mutex_);
  return table_;
}

void TokenFile::look() const {
  const int64_t stamp = stamp_of(path_);
  {
    const MutexLock lock(mutex_);
    if (stamp == stamp_) return;
    stamp_ = stamp;
  }
  try {
    auto table = std::make_shared<const TokenTable>(read_table(path_));
    const MutexLock lock(mutex_);
    table_ = std::move(table);
    log(LogLevel::kInfo, "access tokens read again", {{"file", path_}});
  } catch (const Error& error) {
    log(LogLevel::kError, "access tokens not read again", {{"error", error.what()}});
  }
}

}  // namespace tensord::server
