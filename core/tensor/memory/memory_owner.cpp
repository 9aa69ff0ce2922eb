#include <atomic>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "core/base/memory_limit.h"
#include "core/base/mutex.h"
#include "core/tensor/allocator.h"
#include "core/tensor/memory/caching_allocator.h"
#include "core/tensor/memory/owner_limit.h"

namespace tensord {
namespace {

struct OwnerTable {
  Mutex mutex;
  std::map<std::string, OwnerId> ids TENSORD_GUARDED_BY(mutex){{"server", kServerOwner}};
  std::vector<std::string> names TENSORD_GUARDED_BY(mutex){"server"};
};

OwnerTable& owner_table() {
  static OwnerTable* table = new OwnerTable;  // storages may be freed while statics are destroyed
  return *table;
}

// Few owners have a limit; if none has, no thread takes the lock.
struct LimitTable {
  std::atomic<bool> has_any{false};
  Mutex mutex;
  struct Limit {
    uint64_t bytes = 0;
    bool was_reached = false;
  };
  std::unordered_map<OwnerId, Limit> limits TENSORD_GUARDED_BY(mutex);
};

LimitTable& limit_table() {
  static LimitTable* table = new LimitTable;
  return *table;
}

}  // namespace

OwnerId memory_owner(const std::string& name) {
  OwnerTable& table = owner_table();
  MutexLock lock(table.mutex);
  const auto [it, is_new] = table.ids.emplace(name, static_cast<OwnerId>(table.names.size()));
  if (is_new) table.names.push_back(name);
  return it->second;
}

std::string memory_owner_name(OwnerId owner) {
  OwnerTable& table = owner_table();
  MutexLock lock(table.mutex);
  return owner < table.names.size() ? table.names[owner] : std::string();
}

void set_owner_limit(OwnerId owner, uint64_t limit_bytes) {
  LimitTable& table = limit_table();
  const MutexLock lock(table.mutex);
  if (limit_bytes == 0) {
    table.limits.erase(owner);
  } else {
    table.limits[owner] = {.bytes = limit_bytes};
  }
  table.has_any.store(!table.limits.empty(), std::memory_order_relaxed);
}

uint64_t owner_limit(OwnerId owner) {
  LimitTable& table = limit_table();
  if (!table.has_any.load(std::memory_order_relaxed)) return 0;
  const MutexLock lock(table.mutex);
  const auto found = table.limits.find(owner);
  return found == table.limits.end() ? 0 : found->second.bytes;
}

void note_limit_reached(OwnerId owner) {
  LimitTable& table = limit_table();
  const MutexLock lock(table.mutex);
  const auto found = table.limits.find(owner);
  if (found != table.limits.end()) found->second.was_reached = true;
}

bool was_limit_reached(OwnerId owner) {
  LimitTable& table = limit_table();
  const MutexLock lock(table.mutex);
  const auto found = table.limits.find(owner);
  return found != table.limits.end() && found->second.was_reached;
}

uint64_t room_of_owner() {
  const OwnerId owner = current_memory_owner();
  const uint64_t limit = owner_limit(owner);
  if (limit == 0) return memory_limit() / 2;
  const uint64_t live_bytes = cpu_allocator().live_bytes_of(owner);
  return limit > live_bytes ? limit - live_bytes : 0;
}

void check_room(uint64_t size_bytes, const std::string& what) {
  const uint64_t room = room_of_owner();
  if (size_bytes <= room) return;
  note_limit_reached(current_memory_owner());
  fail(ErrorCode::kResourceExhausted, what, ": asks for ", size_bytes, " bytes of memory, more than the ", room,
       " that it may have");
}

}  // namespace tensord
