#pragma once

#include <string>
#include <vector>

#include "protos/reflection_v1.grpc.pb.h"
#include "protos/reflection_v1alpha.grpc.pb.h"
#include "server/transport/grpc/call.h"

namespace tensord::server {

// Server reflection, both versions. It runs on the common completion queue: gRPC's own plugin would add a thread pool
// that competes for connections.
struct ReflectionServices {
  template <class Service>
  using Rpcs = typename Service::template WithRawMethod_ServerReflectionInfo<typename Service::Service>;
  Rpcs<grpc::reflection::v1::ServerReflection> v1;
  Rpcs<grpc::reflection::v1alpha::ServerReflection> v1alpha;
};

void wait_reflection_calls(ReflectionServices& services, OpenStreams& streams, CallQueue queue);

}  // namespace tensord::server
