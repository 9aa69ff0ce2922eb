#include "server/connections/address_waits.h"

#include <algorithm>

namespace tensord::server {
namespace {

constexpr int64_t kFirstNs = 1'000'000'000;

// An address with no new violation for this long after a wait starts over with the shortest wait.
constexpr int64_t kForgottenAfterNs = 60'000'000'000;

}  // namespace

void AddressWaits::record_cut(const PeerAddress& address, int64_t now_ns) {
  if (longest_ns_ == 0 || !address.is_known()) return;
  const auto found = waits_.find(address);
  if (found == waits_.end() && waits_.size() >= kMaxAddresses) make_room(now_ns);
  Wait& wait = waits_[address];
  if (now_ns < wait.until_ns) return;  // it was waiting already: another of its connections was closed before
  wait.length_ns = is_over(wait, now_ns) ? kFirstNs : wait.length_ns * 2;
  wait.length_ns = std::min(wait.length_ns, longest_ns_);
  wait.until_ns = now_ns + wait.length_ns;
}

bool AddressWaits::waits(const PeerAddress& address, int64_t now_ns) const {
  const auto found = waits_.find(address);
  return found != waits_.end() && now_ns < found->second.until_ns;
}

bool AddressWaits::is_over(const Wait& wait, int64_t now_ns) const {
  return wait.length_ns == 0 || now_ns - wait.until_ns >= kForgottenAfterNs;
}

// Drops expired entries; if none has expired, drops the one with the shortest remaining wait.
void AddressWaits::make_room(int64_t now_ns) {
  std::erase_if(waits_, [&](const auto& entry) { return is_over(entry.second, now_ns); });
  if (waits_.size() < kMaxAddresses) return;
  waits_.erase(std::min_element(waits_.begin(), waits_.end(),
                                [](const auto& a, const auto& b) { return a.second.until_ns < b.second.until_ns; }));
}

}  // namespace tensord::server
