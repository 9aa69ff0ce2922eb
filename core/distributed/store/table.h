#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tensord::distributed {

// What stores keep, and what their operations do to it; nothing waits here. Not thread-safe.
class StoreTable {
 public:
  void set(const std::string& key, std::string value) { values_[key] = std::move(value); }
  // Null: not there.
  const std::string* find(const std::string& key) const;
  bool has_all(std::span<const std::string> keys) const;
  int64_t add(const std::string& key, int64_t amount);
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired);
  void append(const std::string& key, const std::string& value) { values_[key] += value; }
  bool remove(const std::string& key) { return values_.erase(key) > 0; }
  int64_t count() const { return static_cast<int64_t>(values_.size()); }
  std::vector<std::string> keys() const;

  void queue_push(const std::string& key, std::string value) { queues_[key].push_back(std::move(value)); }
  std::optional<std::string> queue_pop(const std::string& key);
  int64_t queue_size(const std::string& key) const;

 private:
  std::map<std::string, std::string> values_;
  std::map<std::string, std::deque<std::string>> queues_;
};

// The sum of a number in decimal text and another one. Throws Error{kInvalidArgument} that names the key.
int64_t add_to_text(const std::string& key, const std::string& text, int64_t amount);

}  // namespace tensord::distributed
