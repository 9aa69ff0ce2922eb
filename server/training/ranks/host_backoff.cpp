#include "server/training/ranks/host_backoff.h"

#include <algorithm>

namespace tensord::server {
namespace {

constexpr std::chrono::seconds kFirst{5}, kMax{300};

}  // namespace

void HostBackoff::add(const std::string& host, const std::string& reason, Clock::time_point now,
                      std::chrono::seconds more) {
  Rest& rest = hosts_[host];
  rest.reason = reason;
  rest.last = std::clamp(2 * rest.last, kFirst, kMax);
  rest.until = now + rest.last + more;
}

std::map<std::string, std::string> HostBackoff::at(Clock::time_point now) const {
  std::map<std::string, std::string> out;
  for (const auto& [host, rest] : hosts_) {
    if (rest.until > now) out[host] = rest.reason;
  }
  return out;
}

}  // namespace tensord::server
