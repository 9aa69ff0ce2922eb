#pragma once

#include "core/base/execution_context.h"
#include "core/distributed/group/process_group.h"

namespace tensord::distributed {

// An operation in a group's queue.
struct ProcessGroup::Item {
  uint64_t number;
  Fingerprint fingerprint;
  Milliseconds timeout;
  Body body;
  WorkPtr work;
  ExecutionContext context;            // of the thread that started it
  SteadyTime started;                  // guarded by the group's mutex, once it is current_
  bool is_told = false;                // used by the watcher only: the store has its description for the others
  int source_rank = -1;                // of a recv
  std::unique_ptr<DeviceEvent> ready;  // on a device: what the caller had enqueued at the time of the call

  // Messages are not collectives, and have no number.
  bool is_message() const { return number == 0; }
  Device device() const { return fingerprint.device; }

  std::string text() const { return concat(number, " ", fingerprint.operation, fingerprint.agreed); }
  const std::string& name() const { return work->name(); }
};

}  // namespace tensord::distributed
