#include "core/distributed/store/store.h"

#include "core/base/error.h"

namespace tensord::distributed {

std::vector<std::string> Store::multi_get(std::span<const std::string> keys, Milliseconds timeout) {
  if (!keys.empty()) wait(keys, timeout);
  std::vector<std::string> values;
  values.reserve(keys.size());
  for (const std::string& key : keys) values.push_back(get(key, timeout));
  return values;
}

void Store::multi_set(std::span<const std::string> keys, std::span<const std::string> values) {
  check_internal(keys.size() == values.size(), "multi_set: ", keys.size(), " keys and ", values.size(), " values");
  for (size_t i = 0; i < keys.size(); ++i) set(keys[i], values[i]);
}

void Store::barrier(const std::string& name, int world_size, Milliseconds timeout) {
  const std::string last = name + "/last";
  if (add(name + "/arrived", 1) == world_size) set(last, "1");
  wait(last, timeout);
}

void fail_store_timeout(std::span<const std::string> keys, Milliseconds timeout) {
  std::string names;
  for (const std::string& key : keys) names += (names.empty() ? "" : ", ") + key;
  fail(ErrorCode::kDeadlineExceeded, "store: wait timeout after ", timeout.count(), "ms, keys: ", names);
}

void fail_store_interrupted() { fail(ErrorCode::kCancelled, "store: the wait was interrupted"); }

}  // namespace tensord::distributed
