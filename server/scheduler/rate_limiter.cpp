#include "server/scheduler/rate_limiter.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/mutex.h"

namespace tensord::server {

RateLimiter::~RateLimiter() = default;

RateLimiter::Permit::~Permit() {
  if (client_ != nullptr) client_->limiter_.release(*client_);
}

RateLimiter::Client::~Client() { limiter_.remove(*this); }

std::unique_ptr<RateLimiter::Client> RateLimiter::add_client(const std::string& model, std::vector<Resource> needs,
                                                             uint32_t priority) {
  const MutexLock lock(mutex_);
  std::set<std::string> names;
  for (const Resource& need : needs) {
    check(names.insert(need.name).second, "rate_limiter of model '", model, "' names resource '", need.name, "' twice");
    const auto limit = limit_of({need.name, need.is_global});
    if (limit != limits_.end()) {
      check(need.count <= limit->second, "rate_limiter of model '", model, "': it needs ", need.count, " of resource '",
            need.name, "', of which there are ", limit->second);
    }
    const Key other{need.name, !need.is_global};
    check(!pools_.contains(other) && (need.is_global || !limits_.contains(other)), "rate_limiter of model '", model,
          "': resource '", need.name, "' is global for one and not global for another");
  }
  std::unique_ptr<Client> client(new Client(*this, std::move(needs), priority));
  client->virtual_time_ = virtual_time_;
  for (const Resource& need : client->needs_) {
    Pool& pool = pools_[{need.name, need.is_global}];
    pool.needs.emplace(need.count, client.get());
    update_limit({need.name, need.is_global}, pool);
  }
  return client;
}

std::pair<uint64_t, uint64_t> RateLimiter::usage(const std::string& name, bool is_global) const {
  const MutexLock lock(mutex_);
  const auto found = pools_.find({name, is_global});
  return found == pools_.end() ? std::pair<uint64_t, uint64_t>{0, 0}
                               : std::pair{found->second.limit, found->second.used};
}

size_t RateLimiter::waiting() const {
  const MutexLock lock(mutex_);
  return waiting_.size();
}

RateLimiter::Limits::const_iterator RateLimiter::limit_of(const Key& key) const {
  const auto exact = limits_.find(key);
  return exact == limits_.end() && key.second ? limits_.find({key.first, false}) : exact;
}

void RateLimiter::update_limit(const Key& key, Pool& pool) const {
  const auto limit = limit_of(key);
  const uint64_t largest = pool.needs.empty() ? 0 : pool.needs.rbegin()->first;
  pool.limit = limit == limits_.end() ? largest : limit->second;
}

void RateLimiter::remove(Client& client) {
  const MutexLock lock(mutex_);
  for (const Resource& need : client.needs_) {
    const auto at = pools_.find({need.name, need.is_global});
    auto& needs = at->second.needs;
    const auto [first, last] = needs.equal_range(need.count);
    needs.erase(std::find_if(first, last, [&](const auto& one) { return one.second == &client; }));
    update_limit(at->first, at->second);
    if (needs.empty()) pools_.erase(at);
  }
  grant_waiting();
}

bool RateLimiter::fits(const Client& client) const {
  return std::all_of(client.needs_.begin(), client.needs_.end(), [&](const Resource& need) TENSORD_REQUIRES(mutex_) {
    const Pool& pool = pools_.at({need.name, need.is_global});
    return pool.used + need.count <= pool.limit;
  });
}

void RateLimiter::take(Client& client) {
  for (const Resource& need : client.needs_) pools_.at({need.name, need.is_global}).used += need.count;
  // A client that was idle for a long time must not accumulate credit.
  virtual_time_ = std::max(virtual_time_, client.virtual_time_);
  client.virtual_time_ = virtual_time_ + client.step_;
}

void RateLimiter::grant_waiting() {
  while (!waiting_.empty()) {
    const auto next = std::min_element(waiting_.begin(), waiting_.end(), [](const Waiter* a, const Waiter* b) {
      return a->client->virtual_time_ < b->client->virtual_time_;
    });
    Waiter& waiter = **next;
    if (!fits(*waiter.client)) return;
    take(*waiter.client);
    waiter.has_permit = true;
    waiting_.erase(next);
    waiter.changed.notify_one();
  }
}

std::optional<RateLimiter::Permit> RateLimiter::try_acquire(Client& client) {
  const MutexLock lock(mutex_);
  if (client.is_stopped_ || !waiting_.empty() || !fits(client)) return std::nullopt;
  take(client);
  return Permit(&client);
}

std::optional<RateLimiter::Permit> RateLimiter::acquire(Client& client, std::optional<Permit>& before) {
  MutexLock lock(mutex_);
  if (before) give_back(*std::exchange(before->client_, nullptr));
  Waiter waiter{.client = &client, .changed = {}};
  if (!client.is_stopped_) {
    waiting_.push_back(&waiter);
    grant_waiting();
  }
  waiter.changed.wait(lock, [&] { return waiter.has_permit || client.is_stopped_; });
  if (waiter.has_permit) return Permit(&client);
  waiting_.remove(&waiter);
  grant_waiting();
  return std::nullopt;
}

void RateLimiter::stop(Client& client) {
  const MutexLock lock(mutex_);
  client.is_stopped_ = true;
  for (Waiter* waiter : waiting_) {
    if (waiter->client == &client) waiter->changed.notify_one();
  }
}

void RateLimiter::release(Client& client) {
  const MutexLock lock(mutex_);
  give_back(client);
  grant_waiting();
}

void RateLimiter::give_back(const Client& client) {
  for (const Resource& need : client.needs_) pools_.at({need.name, need.is_global}).used -= need.count;
}

}  // namespace tensord::server
