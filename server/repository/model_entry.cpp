#include "server/repository/model_entry.h"

#include <algorithm>

#include "core/tensor/caching_allocator.h"

namespace tensord::server {

const char* to_string(ModelState state) {
  switch (state) {
    case ModelState::kLoading: return "LOADING";
    case ModelState::kReady: return "READY";
    case ModelState::kUnloading: return "UNLOADING";
    case ModelState::kUnavailable: return "UNAVAILABLE";
  }
  return "UNKNOWN";
}

uint64_t VersionEntry::bytes() const {
  return handle ? file_bytes + cpu_allocator().live_bytes_of(handle->owner()) : 0;
}

std::string LoadPlan::stamp_of(int64_t version) const {
  const auto found = stamp.versions.find(version);
  return found == stamp.versions.end() ? stamp.shared : stamp.shared + found->second;
}

bool ModelEntry::is_served() const {
  return std::any_of(versions.begin(), versions.end(), [](const auto& version) { return version.second.handle; });
}

bool ModelEntry::is_unloaded() const {
  return error.empty() && !versions.empty() && std::all_of(versions.begin(), versions.end(), [](const auto& item) {
           const VersionEntry& version = item.second;
           return version.state == ModelState::kUnloading ||
                  (version.state == ModelState::kUnavailable && version.reason.starts_with(kUnloadedReason));
         });
}

bool ModelEntry::runs(const std::string& step) const {
  const auto& steps = plan.layout.config.ensemble_steps;
  return std::any_of(steps.begin(), steps.end(), [&](const auto& item) { return item.model == step; });
}

uint64_t ModelEntry::bytes() const {
  uint64_t total = 0;
  for (const auto& [number, version] : versions) total += version.bytes();
  return total;
}

}  // namespace tensord::server
