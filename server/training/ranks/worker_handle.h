#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensord::server {

// A rank's process, on this host or another one. It ends with this. For one thread.
class WorkerHandle {
 public:
  using OnLine = std::function<void(std::string_view line)>;
  virtual ~WorkerHandle() = default;

  virtual const std::string& host() const = 0;
  virtual int64_t pid() const = 0;  // 0: not known yet
  // What it said since the last call, and then, once it has ended, how: "signal 9 (Killed)". All that it said is read
  // once it is seen to have ended.
  virtual std::optional<std::string> read(const OnLine& on_event, const OnLine& on_output) = 0;
  // What becomes readable when there is news; none where only time tells.
  virtual void add_fds(std::vector<pollfd>& fds) const = 0;
};

}  // namespace tensord::server
