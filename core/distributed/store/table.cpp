#include "core/distributed/store/table.h"

#include <algorithm>
#include <charconv>

#include "core/base/error.h"

namespace tensord::distributed {

int64_t add_to_text(const std::string& key, const std::string& text, int64_t amount) {
  int64_t number = 0, sum = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  check(error == std::errc() && stop == end, "store: add to key ", key, ", which holds no number");
  check(!__builtin_add_overflow(number, amount, &sum), "store: add to key ", key, " does not fit 64 bits");
  return sum;
}

void StoreTable::set(const std::string& key, std::string value) {
  const auto [at, is_new] = values_.try_emplace(key);
  size_bytes_ += is_new ? size_of(key.size(), value.size()) : value.size();
  size_bytes_ -= at->second.size();
  at->second = std::move(value);
}

void StoreTable::append(const std::string& key, const std::string& value) {
  const auto [at, is_new] = values_.try_emplace(key);
  size_bytes_ += is_new ? size_of(key.size(), value.size()) : value.size();
  at->second += value;
}

bool StoreTable::remove(const std::string& key) {
  const auto found = values_.find(key);
  if (found == values_.end()) return false;
  size_bytes_ -= size_of(key.size(), found->second.size());
  values_.erase(found);
  return true;
}

void StoreTable::queue_push(const std::string& key, std::string value) {
  size_bytes_ += size_of(key.size(), value.size());
  queues_[key].push_back(std::move(value));
}

const std::string* StoreTable::find(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

bool StoreTable::has_all(std::span<const std::string> keys) const {
  return std::all_of(keys.begin(), keys.end(), [this](const std::string& key) { return find(key) != nullptr; });
}

int64_t StoreTable::add(const std::string& key, int64_t amount) {
  const std::string* const present = find(key);
  const int64_t sum = present ? add_to_text(key, *present, amount) : amount;
  set(key, std::to_string(sum));
  return sum;
}

std::string StoreTable::compare_set(const std::string& key, const std::string& expected, const std::string& desired) {
  const std::string* const present = find(key);
  if (!present && !expected.empty()) return expected;
  if (present && *present != expected) return *present;
  set(key, desired);
  return desired;
}

std::vector<std::string> StoreTable::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : values_) keys.push_back(key);
  return keys;
}

std::optional<std::string> StoreTable::queue_pop(const std::string& key) {
  const auto found = queues_.find(key);
  if (found == queues_.end()) return std::nullopt;
  std::string value = std::move(found->second.front());
  size_bytes_ -= size_of(key.size(), value.size());
  found->second.pop_front();
  if (found->second.empty()) queues_.erase(found);
  return value;
}

int64_t StoreTable::queue_size(const std::string& key) const {
  const auto found = queues_.find(key);
  return found == queues_.end() ? 0 : static_cast<int64_t>(found->second.size());
}

}  // namespace tensord::distributed
