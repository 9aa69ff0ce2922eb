#pragma once

#include "core/base/work_thread.h"
#include "protos/hosts.grpc.pb.h"
#include "server/training/hosts/host_registry.h"
#include "server/transport/grpc/call.h"
#include "server/transport/grpc/server_state.h"

namespace tensord::server {

// Every call arrives as bytes, like those of InferenceService.
using HostRpcs = hosts::v1::HostService::WithRawMethod_Join<
    hosts::v1::HostService::WithRawMethod_FetchFile<hosts::v1::HostService::Service>>;

// State shared by the calls of other daemons. Files are read on `thread`.
struct HostCalls {
  ServerState& state;
  HostRpcs& rpcs;
  WorkThread& thread;

  // Throws Error{kUnimplemented} if training is disabled.
  HostRegistry& registry() const;
};

// Answers the calls of daemons that take part in jobs on this queue.
void wait_host_calls(HostCalls& calls, CallQueue queue);

}  // namespace tensord::server
