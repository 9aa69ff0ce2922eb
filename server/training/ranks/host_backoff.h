#pragma once

#include <chrono>
#include <map>
#include <string>

namespace tensord::server {

// Hosts that get no ranks for a while because their disk failed a start: for 5 seconds, doubled each time up to 5
// minutes, so that a full disk does not use up a job's restarts. Not thread-safe.
class HostBackoff {
 public:
  using Clock = std::chrono::steady_clock;
  // Adds `more` to its time.
  void add(const std::string& host, const std::string& reason, Clock::time_point now, std::chrono::seconds more);
  // Its disk works again.
  void forget(const std::string& host) { hosts_.erase(host); }
  // The hosts and their reasons, by name.
  std::map<std::string, std::string> at(Clock::time_point now) const;

 private:
  struct Rest {
    std::string reason;
    std::chrono::seconds last{0};
    Clock::time_point until;
  };
  std::map<std::string, Rest> hosts_;
};

}  // namespace tensord::server
