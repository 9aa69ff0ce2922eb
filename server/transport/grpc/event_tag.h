#pragma once

#include "core/base/sanitizer_order.h"

namespace tensord::server {

// What a completion queue gives back: one event of one call. Events of a call may be handled by several threads at the
// same time, and while the thread that started the operation is still where it did so.
class EventTag {
 public:
  virtual ~EventTag() = default;
  // For gRPC, with the operation that ends with the event.
  void* tag() {
    sanitizer_release(this);
    return this;
  }
  static EventTag& of(void* tag) {
    sanitizer_acquire(tag);
    return *static_cast<EventTag*>(tag);
  }
  // `ok` false: the operation did not happen (the server is shutting down, the peer has gone).
  virtual void on_event(bool ok) = 0;
  // Its handler takes no time and waits for nothing: it goes on while all else is stalled (QueueThreads).
  virtual bool is_light() const { return false; }
};

}  // namespace tensord::server
