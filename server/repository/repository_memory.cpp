// What loaded models may take, and loading them when requests come.
#include <malloc.h>

#include <algorithm>
#include <thread>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/tensor/caching_allocator.h"
#include "server/repository/repository.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

constexpr auto kLookInterval = std::chrono::milliseconds(1);
// How long a load waits for the memory of a model that was unloaded for it; requests may hold that longer.
constexpr auto kRoomTimeout = std::chrono::seconds(30);
// A model that could not be loaded is not tried again for every request.
constexpr int64_t kRetryNs = 10'000'000'000;

uint64_t file_bytes(const ModelLayout::Version& version) {
  std::error_code error;
  const uint64_t size = fs::is_regular_file(version.file, error) ? fs::file_size(version.file, error) : 0;
  return error ? 0 : size;
}

}  // namespace

std::unique_lock<std::mutex> Repository::hold_memory() {
  std::unique_lock<std::mutex> lock(memory_mutex_, std::defer_lock);
  if (options_.memory_limit_bytes > 0) lock.lock();
  return lock;
}

uint64_t Repository::bytes_served(const std::string& except) const {
  const std::shared_lock lock(mutex_);
  uint64_t total = 0;
  for (const auto& [name, entry] : models_) total += name == except ? 0 : entry.bytes();
  return total;
}

void Repository::make_room(const LoadPlan& plan, const std::vector<const ModelLayout::Version*>& wanted) {
  if (options_.memory_limit_bytes == 0) return;
  uint64_t needed = 0;
  for (const ModelLayout::Version* version : wanted) needed += file_bytes(*version);
  make_room(plan, needed);
}

void Repository::check_room(const LoadPlan& plan, const std::map<int64_t, VersionEntry>& loaded) {
  if (options_.memory_limit_bytes == 0) return;
  uint64_t needed = 0;
  for (const auto& [number, version] : loaded) needed += version.bytes();
  make_room(plan, needed);
}

void Repository::make_room(const LoadPlan& plan, uint64_t needed) {
  const uint64_t limit = options_.memory_limit_bytes;
  const std::string& name = plan.layout.name;
  while (needed > 0 && bytes_served(name) + needed > limit) {
    if (needed <= limit && options_.loads_on_demand && unload_least_recently_used(plan)) continue;
    fail(ErrorCode::kResourceExhausted, "model '", name, "' takes ", needed,
         " bytes, more than --model-memory-limit of ", limit, " leaves");
  }
}

bool Repository::unload_least_recently_used(const LoadPlan& plan) {
  std::string victim;
  {
    const std::shared_lock lock(mutex_);
    int64_t oldest_ns = INT64_MAX;
    for (const auto& [name, entry] : models_) {
      const auto& config = entry.plan.layout.config;
      const int64_t used_ns = entry.used_ns.load(std::memory_order_relaxed);
      // An ensemble takes nothing itself.
      if (name == plan.layout.name || !entry.is_served() || config.is_ensemble() || used_ns >= oldest_ns) continue;
      // Only the repository's models come back by themselves.
      if (entry.plan.is_override()) continue;
      victim = name;
      oldest_ns = used_ns;
    }
  }
  if (victim.empty()) return false;
  log(LogLevel::kInfo, "model is unloaded to make room", {{"model", victim}, {"for", plan.layout.name}});
  metrics_.count_eviction(victim);
  const std::string reason = concat(kUnloadedReason, " to make room; a request loads it again");
  withdraw_ensembles_with(victim, reason, /*is_withheld=*/false);
  const Unloading unloading = withdraw(victim, reason, /*is_withheld=*/false);
  try {
    wait_until_gone(unloading, kRoomTimeout);
  } catch (const Error& error) {
    log(LogLevel::kWarning, "memory is not back yet", {{"model", victim}, {"reason", error.what()}});
  }
  return true;
}

void Repository::wait_until_gone(const Unloading& unloading, std::chrono::milliseconds timeout) const {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const auto fail_late = [&](const auto&... parts) {
    fail(ErrorCode::kDeadlineExceeded, "model '", unloading.name, "' takes no requests any more, but ", parts...);
  };
  for (const auto& gone : unloading.gone) {
    if (gone.wait_until(deadline) != std::future_status::ready) fail_late("some that it took still run");
  }
  // Answers that are on their way hold their tensors.
  for (const OwnerId owner : unloading.owners) {
    for (uint64_t left = cpu_allocator().live_bytes_of(owner); left > 0 && !is_owner_served(owner);
         left = cpu_allocator().live_bytes_of(owner)) {
      if (std::chrono::steady_clock::now() >= deadline) fail_late(left, " bytes of its tensors are still in use");
      std::this_thread::sleep_for(kLookInterval);
    }
  }
  if (unloading.gone.empty()) return;
  cpu_allocator().trim();
  malloc_trim(0);
}

bool Repository::is_owner_served(OwnerId owner) const {
  const std::shared_lock lock(mutex_);
  return std::any_of(models_.begin(), models_.end(), [owner](const auto& model) {
    const auto& versions = model.second.versions;
    return std::any_of(versions.begin(), versions.end(), [owner](const auto& version) {
      return version.second.handle && version.second.handle->owner() == owner;
    });
  });
}

bool Repository::load_on_demand(const std::string& name, std::function<void()> then) {
  if (!demand_) return false;
  bool is_known = false;
  {
    const std::shared_lock lock(mutex_);
    const auto model = models_.find(name);
    if (model != models_.end()) {
      const ModelEntry& entry = model->second;
      if (entry.is_served() || entry.is_withheld || Clock::system().now_ns() < entry.retry_ns) return false;
      is_known = true;
    }
  }
  if (!is_known) {
    std::error_code error;
    const bool is_there =
        is_plain_name(name) && std::any_of(options_.roots.begin(), options_.roots.end(),
                                           [&](auto& root) { return fs::is_directory(fs::path(root) / name, error); });
    if (!is_there) return false;
  }
  if (demand_->add(name, std::move(then))) return true;
  fail(ErrorCode::kResourceExhausted, "Exceeds maximum queue size: too many requests wait until model '", name,
       "' is loaded");
}

void Repository::load_demanded(const std::string& name) {
  std::string reason;
  try {
    load_model({.name = name, .config = {}, .files = {}}, /*is_along=*/false, {});
    plan_ensembles_again(name);
    return;
  } catch (const std::exception& error) {
    reason = error.what();
  }
  if (is_served(name)) return;
  set_error(name, "", {}, reason);
  const std::unique_lock lock(mutex_);
  models_[name].retry_ns = Clock::system().now_ns() + kRetryNs;
}

}  // namespace tensord::server
