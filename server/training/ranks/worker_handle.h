#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensord::server {

// A rank's process, on this host or another one. It ends with this object. Not thread-safe.
class WorkerHandle {
 public:
  using OnLine = std::function<void(std::string_view line)>;
  virtual ~WorkerHandle() = default;

  virtual const std::string& host() const = 0;
  virtual int64_t pid() const = 0;  // 0: not known yet
  // Passes on what the rank wrote since the last call. Once it has ended and everything is read, returns how it ended:
  // "signal 9 (Killed)".
  virtual std::optional<std::string> read(const OnLine& on_event, const OnLine& on_output) = 0;
  // Adds descriptors that become readable when there is news; none if it must be polled.
  virtual void add_fds(std::vector<pollfd>& fds) const = 0;
};

}  // namespace tensord::server
