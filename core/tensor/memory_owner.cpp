#include "core/tensor/allocator.h"

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace tensord {
namespace {

struct OwnerTable {
  std::mutex mutex;
  std::map<std::string, OwnerId> ids{{"server", kServerOwner}};
  std::vector<std::string> names{"server"};
};

OwnerTable& owner_table() {
  static OwnerTable* table = new OwnerTable;  // storages may be freed while statics die
  return *table;
}

thread_local OwnerId t_owner = kServerOwner;

}  // namespace

OwnerId memory_owner(const std::string& name) {
  OwnerTable& table = owner_table();
  std::lock_guard lock(table.mutex);
  const auto [it, is_new] = table.ids.emplace(name, static_cast<OwnerId>(table.names.size()));
  if (is_new) table.names.push_back(name);
  return it->second;
}

std::string memory_owner_name(OwnerId owner) {
  OwnerTable& table = owner_table();
  std::lock_guard lock(table.mutex);
  return owner < table.names.size() ? table.names[owner] : std::string();
}

MemoryOwnerScope::MemoryOwnerScope(OwnerId owner) : previous_(t_owner) { t_owner = owner; }
MemoryOwnerScope::~MemoryOwnerScope() { t_owner = previous_; }

OwnerId current_memory_owner() { return t_owner; }

}  // namespace tensord
