#include "server/repository/memory_budget.h"

#include "core/base/error.h"

namespace tensord::server {

std::unique_lock<std::mutex> MemoryBudget::hold() {
  std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
  if (limit_bytes_ > 0) lock.lock();
  return lock;
}

void MemoryBudget::make_room_for(const std::string& model, const std::vector<const ModelLayout::Version*>& versions) {
  if (limit_bytes_ == 0) return;
  uint64_t needed = 0;
  for (const ModelLayout::Version* version : versions) needed += version->file_bytes();
  make_room(model, needed);
}

void MemoryBudget::make_room_for(const std::string& model, const LoadedVersions& versions) {
  if (limit_bytes_ == 0) return;
  uint64_t needed = 0;
  for (const auto& [number, version] : versions) needed += version.bytes();
  make_room(model, needed);
}

void MemoryBudget::make_room(const std::string& model, uint64_t needed_bytes) {
  while (needed_bytes > 0 && bytes_of_others(model) + needed_bytes > limit_bytes_) {
    const std::string victim = needed_bytes <= limit_bytes_ && evict_ ? least_recently_used(model) : "";
    if (victim.empty()) {
      fail(ErrorCode::kResourceExhausted, "model '", model, "' takes ", needed_bytes,
           " bytes, more than --model-memory-limit of ", limit_bytes_, " leaves");
    }
    evict_(victim, model);
  }
}

uint64_t MemoryBudget::bytes_of_others(const std::string& model) const {
  return models_.read([&](const ModelTable::Models& models) {
    uint64_t total = 0;
    for (const auto& [name, entry] : models) total += name == model ? 0 : entry.bytes();
    return total;
  });
}

std::string MemoryBudget::least_recently_used(const std::string& but) const {
  return models_.read([&](const ModelTable::Models& models) {
    std::string oldest;
    int64_t oldest_ns = INT64_MAX;
    for (const auto& [name, entry] : models) {
      const int64_t used_ns = entry.used_ns.load(std::memory_order_relaxed);
      // An ensemble uses no memory of its own.
      if (name == but || !entry.is_served() || entry.plan.layout.config.is_ensemble() || used_ns >= oldest_ns) continue;
      // Models from client overrides are not evicted, because only the repository's models can be loaded again.
      if (entry.plan.is_override()) continue;
      oldest = name;
      oldest_ns = used_ns;
    }
    return oldest;
  });
}

}  // namespace tensord::server
