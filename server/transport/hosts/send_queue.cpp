#include "server/transport/hosts/send_queue.h"

#include <utility>

#include "server/transport/hosts/host_wire.h"

namespace tensord::server {

bool HostSendQueue::push(const HostReport& report) {
  hosts::v1::HostReport message;
  to_message(report, message);
  const size_t size = message.ByteSizeLong();
  const MutexLock lock(mutex_);
  if (bytes_ + size > kMaxBytes) return false;
  bytes_ += size;
  messages_.push_back(std::move(message));
  changed_.notify_all();
  return true;
}

std::optional<hosts::v1::HostReport> HostSendQueue::pop(std::chrono::milliseconds interval) {
  MutexLock lock(mutex_);
  changed_.wait_for(lock, interval, [this]() TENSORD_REQUIRES(mutex_) { return is_closed_ || !messages_.empty(); });
  if (is_closed_) return std::nullopt;
  if (messages_.empty()) return hosts::v1::HostReport();
  hosts::v1::HostReport message = std::move(messages_.front());
  messages_.pop_front();
  bytes_ -= message.ByteSizeLong();
  return message;
}

void HostSendQueue::close() {
  const MutexLock lock(mutex_);
  is_closed_ = true;
  changed_.notify_all();
}

}  // namespace tensord::server
