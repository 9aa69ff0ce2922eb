#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/async_stream.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "core/base/mutex.h"

#include "server/transport/grpc/call.h"
#include "server/transport/grpc/server_state.h"

namespace tensord::server {

class StreamCall;

using InferStream = grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;
// Requests the next ModelStreamInfer call from the service.
using StartStream = std::function<void(grpc::ServerContext*, InferStream*, grpc::ServerCompletionQueue*, void* tag)>;

// State shared by all ModelStreamInfer calls. Thread-safe.
class StreamCalls {
 public:
  StreamCalls(ServerState& state, StartStream start);

  // Answers calls on this queue from now on.
  void wait(const CallQueue& queue);
  // Ends every stream once its requests are answered, and accepts no new requests.
  void drain();

 private:
  friend class StreamCall;
  bool add(const std::shared_ptr<StreamCall>& call);  // false: new streams are not accepted
  void remove(const StreamCall* call);

  ServerState& state_;
  const StartStream start_;
  Mutex mutex_;
  std::unordered_map<const StreamCall*, std::weak_ptr<StreamCall>> open_ TENSORD_GUARDED_BY(mutex_);
  bool is_draining_ TENSORD_GUARDED_BY(mutex_) = false;
};

}  // namespace tensord::server
