#include "server/scheduler/rate_limiter.h"

#include <algorithm>
#include <climits>

#include "core/base/error.h"
#include "core/base/mutex.h"

namespace tensord::server {

RateLimiter::~RateLimiter() = default;

RateLimiter::Permit::~Permit() {
  if (client_ != nullptr) client_->limiter_.release(*client_, place_);
}

int RateLimiter::Permit::device() const { return client_->place_devices_[place_]; }

RateLimiter::Client::Client(RateLimiter& limiter, std::vector<Resource> needs, uint32_t priority,
                            std::vector<int> devices)
    : limiter_(limiter),
      needs_(std::move(needs)),
      step_(priority == 0 ? 1 : priority),
      devices_(std::move(devices)),
      place_devices_(devices_.empty() ? std::vector<int>{0} : devices_) {
  std::ranges::sort(place_devices_);
  place_devices_.erase(std::unique(place_devices_.begin(), place_devices_.end()), place_devices_.end());
  for (const int device : place_devices_) {
    const auto workers = static_cast<size_t>(std::ranges::count(devices_, device));
    places_.push_back({.workers = devices_.empty() ? SIZE_MAX : workers});
  }
}

RateLimiter::Client::~Client() { limiter_.remove(*this); }

std::vector<RateLimiter::Key> RateLimiter::keys_of(const Client& client, const Resource& need) {
  if (need.is_global) return {{need.name, true, 0}};
  std::vector<Key> keys;
  for (const int device : client.place_devices_) keys.push_back({need.name, false, device});
  return keys;
}

bool RateLimiter::is_in_use(const std::string& name, bool is_global) const {
  const auto found = pools_.lower_bound({name, is_global, INT_MIN});
  return found != pools_.end() && found->first.name == name && found->first.is_global == is_global;
}

void RateLimiter::check_need(const std::string& model, const Client& client, const Resource& need) const {
  for (const Key& key : keys_of(client, need)) {
    const std::optional<uint64_t> limit = limit_of(key);
    check(!limit || need.count <= *limit, "rate_limiter of model '", model, "': it needs ", need.count,
          " of resource '", need.name, "', of which there are ", limit.value_or(0));
  }
  const bool has_other_limit =
      need.is_global
          ? std::ranges::any_of(device_limits_, [&](const auto& one) { return one.first.first == need.name; })
          : limits_.contains({need.name, true});
  check(!is_in_use(need.name, !need.is_global) && !has_other_limit, "rate_limiter of model '", model, "': resource '",
        need.name, "' is global for one and not global for another");
}

std::unique_ptr<RateLimiter::Client> RateLimiter::add_client(const std::string& model, std::vector<Resource> needs,
                                                             uint32_t priority, std::vector<int> devices) {
  std::set<std::string> names;
  for (const Resource& need : needs) {
    check(names.insert(need.name).second, "rate_limiter of model '", model, "' names resource '", need.name, "' twice");
  }
  std::unique_ptr<Client> client(new Client(*this, std::move(needs), priority, std::move(devices)));
  const MutexLock lock(mutex_);  // after the client, whose destructor takes it too
  for (const Resource& need : client->needs_) check_need(model, *client, need);
  client->virtual_time_ = virtual_time_;
  for (const Resource& need : client->needs_) {
    for (const Key& key : keys_of(*client, need)) {
      Pool& pool = pools_[key];
      pool.needs.emplace(need.count, client.get());
      update_limit(key, pool);
    }
  }
  return client;
}

std::pair<uint64_t, uint64_t> RateLimiter::usage(const std::string& name, bool is_global, int device) const {
  const MutexLock lock(mutex_);
  const auto found = pools_.find({name, is_global, is_global ? 0 : device});
  return found == pools_.end() ? std::pair<uint64_t, uint64_t>{0, 0}
                               : std::pair{found->second.limit, found->second.used};
}

size_t RateLimiter::waiting() const {
  const MutexLock lock(mutex_);
  return waiting_.size();
}

std::optional<uint64_t> RateLimiter::limit_of(const Key& key) const {
  if (key.is_global) {
    const auto own = limits_.find({key.name, true});
    if (own != limits_.end()) return own->second;
  } else {
    const auto own = device_limits_.find({key.name, key.device});
    if (own != device_limits_.end()) return own->second;
  }
  const auto found = limits_.find({key.name, false});
  return found == limits_.end() ? std::nullopt : std::optional(found->second);
}

void RateLimiter::update_limit(const Key& key, Pool& pool) const {
  const uint64_t largest = pool.needs.empty() ? 0 : pool.needs.rbegin()->first;
  pool.limit = limit_of(key).value_or(largest);
}

void RateLimiter::remove(Client& client) {
  const MutexLock lock(mutex_);
  for (const Resource& need : client.needs_) {
    for (const Key& key : keys_of(client, need)) {
      const auto at = pools_.find(key);
      if (at == pools_.end()) continue;  // it was refused
      std::erase_if(at->second.needs, [&](const auto& one) { return one.second == &client; });
      update_limit(key, at->second);
      if (at->second.needs.empty()) pools_.erase(at);
    }
  }
  grant_waiting();
}

bool RateLimiter::fits(const Client& client, int device, const Claims& claims) const {
  if (claims.devices.contains(device)) return false;
  return std::ranges::all_of(client.needs_, [&](const Resource& need) TENSORD_REQUIRES(mutex_) {
    if (need.is_global && claims.resources.contains(need.name)) return false;
    const Pool& pool = pools_.at({need.name, need.is_global, need.is_global ? 0 : device});
    return pool.used + need.count <= pool.limit;
  });
}

std::optional<size_t> RateLimiter::find_place(const Client& client, std::optional<int> device,
                                              const Claims& claims) const {
  std::optional<size_t> best;
  for (size_t i = 0; i < client.places_.size(); ++i) {
    const Client::Place& place = client.places_[i];
    if ((device && client.place_devices_[i] != *device) || place.running >= place.workers) continue;
    if (best && client.places_[*best].running <= place.running) continue;
    if (fits(client, client.place_devices_[i], claims)) best = i;
  }
  return best;
}

void RateLimiter::claim(const Client& client, std::optional<int> device, Claims& claims) {
  for (size_t i = 0; i < client.places_.size(); ++i) {
    const bool may_run = client.places_[i].running < client.places_[i].workers;
    if (may_run && (!device || client.place_devices_[i] == *device)) claims.devices.insert(client.place_devices_[i]);
  }
  for (const Resource& need : client.needs_) {
    if (need.is_global) claims.resources.insert(need.name);
  }
}

void RateLimiter::take(Client& client, size_t place) {
  const int device = client.place_devices_[place];
  for (const Resource& need : client.needs_) {
    pools_.at({need.name, need.is_global, need.is_global ? 0 : device}).used += need.count;
  }
  ++client.places_[place].running;
  // A client that was idle for a long time must not accumulate credit.
  virtual_time_ = std::max(virtual_time_, client.virtual_time_);
  client.virtual_time_ = virtual_time_ + client.step_;
}

bool RateLimiter::grant_next() {
  std::vector<Waiter*> order(waiting_.begin(), waiting_.end());
  std::ranges::stable_sort(order, {}, [](const Waiter* one) { return one->client->virtual_time_; });
  Claims claims;
  for (Waiter* const waiter : order) {
    waiter->place = find_place(*waiter->client, waiter->device, claims);
    if (waiter->place) {
      take(*waiter->client, *waiter->place);
      waiting_.remove(waiter);
      waiter->changed.notify_one();
      return true;
    }
    claim(*waiter->client, waiter->device, claims);
  }
  return false;
}

void RateLimiter::grant_waiting() {
  while (grant_next()) {
  }
}

std::optional<RateLimiter::Permit> RateLimiter::try_acquire(Client& client) {
  const MutexLock lock(mutex_);
  if (client.is_stopped_) return std::nullopt;
  Claims claims;
  for (const Waiter* waiter : waiting_) claim(*waiter->client, waiter->device, claims);
  const std::optional<size_t> place = find_place(client, std::nullopt, claims);
  if (!place) return std::nullopt;
  take(client, *place);
  return Permit(&client, *place);
}

std::optional<RateLimiter::Permit> RateLimiter::acquire(Client& client, std::optional<Permit>& before,
                                                        std::optional<int> device) {
  MutexLock lock(mutex_);
  if (before) give_back(*std::exchange(before->client_, nullptr), before->place_);
  Waiter waiter{.client = &client, .device = device, .changed = {}};
  if (!client.is_stopped_) {
    waiting_.push_back(&waiter);
    grant_waiting();
  }
  waiter.changed.wait(lock, [&] { return waiter.place || client.is_stopped_; });
  if (waiter.place) return Permit(&client, *waiter.place);
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

void RateLimiter::release(Client& client, size_t place) {
  const MutexLock lock(mutex_);
  give_back(client, place);
  grant_waiting();
}

void RateLimiter::give_back(Client& client, size_t place) {
  const int device = client.place_devices_[place];
  for (const Resource& need : client.needs_) {
    pools_.at({need.name, need.is_global, need.is_global ? 0 : device}).used -= need.count;
  }
  --client.places_[place].running;
}

}  // namespace tensord::server
