#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/async_unary_call.h>

#include <atomic>
#include <functional>
#include <memory>

#include "server/transport/grpc/call.h"
#include "server/transport/infer/request_context.h"

namespace tensord::server {

// Requests the next ModelInfer call from the service.
using StartInfer =
    std::function<void(grpc::ServerContext*, grpc::ByteBuffer* request,
                       grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>*, grpc::ServerCompletionQueue*, void* tag)>;

// One ModelInfer call, from bytes to bytes:
//     waiting → arrived → [its model is loaded →] (read_request, submit to the model) → respond() on a worker →
//   answered.
class InferCall final : public GrpcCall, public InferSink {
 public:
  InferCall(const CallQueue& queue, ServerState& state, const StartInfer& start);

  void respond(InferResult result, bool is_final) override;
  bool is_cancelled() const override { return is_cancelled_.load(std::memory_order_relaxed); }
  std::shared_ptr<const void> hold_memory(uint64_t size_bytes) override { return state_.limits.share(size_bytes); }

 private:
  void ask(void* tag) override;
  std::shared_ptr<GrpcCall> successor() const override;
  void accept() override;
  void refuse(const grpc::Status& status) override;
  void on_over() override;
  void on_finished() override;
  void on_loaded(bool ok);
  bool waits_for_model(absl::Status& refused);
  void answer(const InferResult& result, const grpc::ByteBuffer& response);

  ServerState& state_;
  const StartInfer& start_;
  grpc::ByteBuffer request_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_{&context()};
  Operation<InferCall> loaded_{this, &InferCall::on_loaded};
  std::unique_ptr<grpc::Alarm> alarm_;  // returns the call to its queue when the model is loaded
  int waits_left_ = 3;                  // for the model to be loaded; it may be evicted again

  RequestContext request_context_;
  int64_t answered_ns_ = 0;  // when the answer was passed to gRPC
  std::atomic<bool> is_cancelled_{false};
  std::atomic<ModelVersion*> submitted_to_{nullptr};  // the request context's model, set before it can see the request
};

}  // namespace tensord::server
