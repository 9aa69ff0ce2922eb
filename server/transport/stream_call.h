#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_set>

#include "server/transport/call.h"
#include "server/transport/server_state.h"

namespace tensord::server {

class StreamCall;

using InferStream = grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;
// Asks the service for the next ModelStreamInfer call.
using StartStream = std::function<void(grpc::ServerContext*, InferStream*, grpc::ServerCompletionQueue*, void* tag)>;

struct StreamLimits {
  // Of a stream. While it has as many requests under way, or as many bytes of responses wait to be sent, no more
  // requests are read.
  size_t requests = 1024;
  size_t waiting_bytes = size_t{64} << 20;
  // With as many bytes of a decoupled model's responses waiting, the client does not read, and the stream is ended.
  size_t most_waiting_bytes = size_t{256} << 20;
};

// What all ModelStreamInfer calls share. Thread-safe.
class StreamCalls {
 public:
  StreamCalls(ServerState& state, StartStream start, StreamLimits limits = {});

  // Answers calls on this queue from now on.
  void wait(CallQueue queue);
  // Every stream ends when the requests it has are answered, and takes no more.
  void drain();

 private:
  friend class StreamCall;
  bool add(StreamCall* call);  // false: no stream is taken any more
  void remove(StreamCall* call);

  ServerState& state_;
  const StartStream start_;
  const StreamLimits limits_;
  std::mutex mutex_;  // before a call's
  std::unordered_set<StreamCall*> open_;
  bool is_draining_ = false;  // by mutex_
};

}  // namespace tensord::server
