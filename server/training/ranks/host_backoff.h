#pragma once

#include <chrono>
#include <map>
#include <string>

namespace tensord::server {

// Hosts whose disk ended a start of a job's ranks, which get none for a while: 5 seconds, and twice as long each time
// up to 5 minutes, so that a disk that stays full does not use up a job's restarts at once. Not thread-safe.
class HostBackoff {
 public:
  using Clock = std::chrono::steady_clock;
  // `more` is added to its time.
  void add(const std::string& host, const std::string& reason, Clock::time_point now, std::chrono::seconds more);
  // Its disk is well.
  void forget(const std::string& host) { hosts_.erase(host); }
  // Their names and why they rest, by name.
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
