#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_set>

#include "server/transport/grpc/call.h"
#include "server/transport/grpc/server_state.h"

namespace tensord::server {

class StreamCall;

using InferStream = grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;
// Asks the service for the next ModelStreamInfer call.
using StartStream = std::function<void(grpc::ServerContext*, InferStream*, grpc::ServerCompletionQueue*, void* tag)>;

// What all ModelStreamInfer calls share. Thread-safe.
class StreamCalls {
 public:
  StreamCalls(ServerState& state, StartStream start);

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
  std::mutex mutex_;  // before a call's
  std::unordered_set<StreamCall*> open_;
  bool is_draining_ = false;  // by mutex_
};

}  // namespace tensord::server
