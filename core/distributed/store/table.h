#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tensord::distributed {

// The data of a store and the operations on it. Nothing here waits. Not thread-safe.
class StoreTable {
 public:
  void set(const std::string& key, std::string value);
  // Null if missing.
  const std::string* find(const std::string& key) const;
  bool has_all(std::span<const std::string> keys) const;
  int64_t add(const std::string& key, int64_t amount);
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired);
  void append(const std::string& key, const std::string& value);
  bool remove(const std::string& key);
  int64_t count() const { return static_cast<int64_t>(values_.size()); }
  std::vector<std::string> keys() const;

  // Approximate memory of keys, values and queues.
  size_t size_bytes() const { return size_bytes_; }
  static size_t size_of(size_t key_bytes, size_t value_bytes) { return key_bytes + value_bytes + kEntryBytes; }

  void queue_push(const std::string& key, std::string value);
  std::optional<std::string> queue_pop(const std::string& key);
  int64_t queue_size(const std::string& key) const;

 private:
  static constexpr size_t kEntryBytes = 128;
  size_t size_bytes_ = 0;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::deque<std::string>> queues_;
};

// Adds `amount` to a number in decimal text. Throws Error{kInvalidArgument} that names the key.
int64_t add_to_text(const std::string& key, const std::string& text, int64_t amount);

}  // namespace tensord::distributed
