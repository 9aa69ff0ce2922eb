#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>

#include "core/base/mutex.h"
#include "protos/hosts.pb.h"
#include "server/training/hosts/host_messages.h"

namespace tensord::server {

// What waits to be said to a coordinator; one thread says it. Thread-safe.
class HostSendQueue {
 public:
  // So many bytes of messages may wait.
  static constexpr size_t kMaxBytes = 64 << 20;

  // False: too much waits, and the message is not kept.
  bool push(const HostReport& report);
  // The next one, or an empty one where there was nothing for `interval`; none once it is closed.
  std::optional<hosts::v1::HostReport> pop(std::chrono::milliseconds interval);
  void close();

 private:
  Mutex mutex_;
  CondVar changed_;
  bool is_closed_ TENSORD_GUARDED_BY(mutex_) = false;
  std::deque<hosts::v1::HostReport> messages_ TENSORD_GUARDED_BY(mutex_);
  size_t bytes_ TENSORD_GUARDED_BY(mutex_) = 0;
};

}  // namespace tensord::server
