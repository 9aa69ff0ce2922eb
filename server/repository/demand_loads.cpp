#include "server/repository/demand_loads.h"

#include <utility>

#include "core/base/mutex.h"
#include "core/base/thread.h"

namespace tensord::server {

DemandLoads::DemandLoads(int threads, size_t max_waiting, std::function<void(const std::string& name)> load)
    : max_waiting_(max_waiting), load_(std::move(load)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back("demand-load", [this] { work(); });
}

DemandLoads::~DemandLoads() { stop(); }

void DemandLoads::stop() {
  {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_all();
  for (Thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  const auto left = [this] {
    const MutexLock lock(mutex_);
    return std::exchange(waiting_, {});
  }();
  for (const auto& [name, waiting] : left) {
    for (const auto& then : waiting) then();
  }
}

bool DemandLoads::add(const std::string& name, std::function<void()> then) {
  {
    const MutexLock lock(mutex_);
    if (is_stopped_) return false;
    const auto [slot, is_new] = waiting_.try_emplace(name);
    if (slot->second.size() >= max_waiting_) return false;
    slot->second.push_back(std::move(then));
    if (!is_new) return true;
    names_.push_back(name);
  }
  changed_.notify_one();
  return true;
}

void DemandLoads::work() {
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this]() TENSORD_REQUIRES(mutex_) { return is_stopped_ || !names_.empty(); });
    if (is_stopped_) return;
    const std::string name = std::move(names_.front());
    names_.pop_front();
    lock.unlock();
    run_logged("demand-load", [&] { load_(name); });
    lock.lock();
    // Callers that joined during the load find its result too.
    const std::vector<std::function<void()>> waiting = std::move(waiting_.extract(name).mapped());
    lock.unlock();
    for (const auto& then : waiting) run_logged("demand-load", then);
    lock.lock();
  }
}

}  // namespace tensord::server
