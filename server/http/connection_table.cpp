#include "server/http/connection_table.h"

#include "core/base/mutex.h"

namespace tensord::server {

bool ConnectionTable::add(Place& place, Victim& victim) {
  const MutexLock lock(mutex_);
  Group* const group = place.address.empty() ? nullptr : &by_address_[place.address];
  const bool is_address_full = group && limits_.per_address != 0 && group->count >= limits_.per_address;
  const bool is_full = limits_.connections != 0 && all_.count >= limits_.connections;
  if (is_address_full || is_full) {
    victim = evict(is_address_full ? *group : all_);
    if (victim.loop < 0) {
      if (group && group->count == 0) by_address_.erase(place.address);
      return false;
    }
  }
  // Looked up again: evicting a connection may have removed this address's entry.
  if (!place.address.empty()) ++by_address_[place.address].count;
  ++all_.count;
  place.is_in = true;
  link(place, Phase::kIdle);
  return true;
}

void ConnectionTable::set_phase(Place& place, Phase phase, Victim& victim) {
  const MutexLock lock(mutex_);
  if (!place.is_in || place.phase == phase) return;
  unlink(place);
  link(place, phase);
  if (phase != Phase::kHead || place.address.empty() || limits_.heads_per_address == 0) return;
  Group& group = by_address_[place.address];
  if (group.heads.size() > limits_.heads_per_address) victim = evict(group, /*is_heads_only=*/true);
}

void ConnectionTable::remove(Place& place) {
  const MutexLock lock(mutex_);
  if (place.is_in) take_out(place);
}

size_t ConnectionTable::size() const {
  const MutexLock lock(mutex_);
  return all_.count;
}

ConnectionTable::Victim ConnectionTable::evict(Group& group, bool is_heads_only) {
  Order& order = is_heads_only || group.idle.empty() ? group.heads : group.idle;
  if (order.empty()) return {};
  Place& place = *order.begin()->second;
  const Victim victim{place.loop, place.connection};
  take_out(place);
  return victim;
}

void ConnectionTable::link(Place& place, Phase phase) {
  place.phase = phase;
  place.since = ++changes_;
  if (phase == Phase::kBusy) return;
  const auto add = [&](Group& group) {
    (phase == Phase::kIdle ? group.idle : group.heads).emplace(place.since, &place);
  };
  add(all_);
  if (!place.address.empty()) add(by_address_[place.address]);
}

void ConnectionTable::unlink(Place& place) {
  if (place.phase == Phase::kBusy) return;
  const auto erase = [&](Group& group) { (place.phase == Phase::kIdle ? group.idle : group.heads).erase(place.since); };
  erase(all_);
  if (!place.address.empty()) erase(by_address_[place.address]);
}

void ConnectionTable::take_out(Place& place) {
  unlink(place);
  place.is_in = false;
  --all_.count;
  if (place.address.empty()) return;
  const auto group = by_address_.find(place.address);
  if (--group->second.count == 0) by_address_.erase(group);
}

}  // namespace tensord::server
