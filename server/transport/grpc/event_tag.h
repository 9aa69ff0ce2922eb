#pragma once

#include "core/base/sanitizer_order.h"

namespace tensord::server {

// A completion queue's tag: one event of one call. Events of a call may be handled concurrently by several threads,
// even before the function that started the operation has returned.
class EventTag {
 public:
  virtual ~EventTag() = default;
  // Pass this to gRPC with the operation.
  void* tag() {
    sanitizer_release(this);
    return this;
  }
  static EventTag& of(void* tag) {
    sanitizer_acquire(tag);
    return *static_cast<EventTag*>(tag);
  }
  // `ok` false: the operation did not happen (shutdown, or the peer is gone).
  virtual void on_event(bool ok) = 0;
  // Whether the handler is short and never blocks, so that it may run while all other threads are stalled
  // (QueueThreads).
  virtual bool is_light() const { return false; }
};

}  // namespace tensord::server
