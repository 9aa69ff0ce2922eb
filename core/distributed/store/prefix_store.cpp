#include "core/distributed/store/prefix_store.h"

namespace tensord::distributed {

PrefixStore::PrefixStore(std::string prefix, std::shared_ptr<Store> store)
    : Store(store->timeout()), prefix_(std::move(prefix)), store_(std::move(store)) {}

std::vector<std::string> PrefixStore::list_keys() {
  const std::string start = prefix_ + "/";
  std::vector<std::string> keys;
  for (const std::string& key : store_->list_keys()) {
    if (key.starts_with(start)) keys.push_back(key.substr(start.size()));
  }
  return keys;
}

std::vector<std::string> PrefixStore::named(std::span<const std::string> keys) const {
  std::vector<std::string> names;
  for (const std::string& key : keys) names.push_back(named(key));
  return names;
}

}  // namespace tensord::distributed
