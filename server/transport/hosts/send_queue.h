#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>

#include "core/base/mutex.h"
#include "protos/hosts.pb.h"
#include "server/training/hosts/host_messages.h"

namespace tensord::server {

// Messages that wait to be sent to a coordinator; one thread sends them. Thread-safe.
class HostSendQueue {
 public:
  // Limit of the waiting messages.
  static constexpr size_t kMaxBytes = 64 << 20;

  // False: the queue is full, and the message was dropped.
  bool push(const HostReport& report);
  // The next message; an empty one if there was none for `interval`; none once the queue is closed.
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
