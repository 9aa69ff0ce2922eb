#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>

#include "server/transport/grpc/call.h"
#include "server/transport/infer/ticket.h"

namespace tensord::server {

// Asks the service for the next ModelInfer call.
using StartInfer =
    std::function<void(grpc::ServerContext*, grpc::ByteBuffer* request,
                       grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>*, grpc::ServerCompletionQueue*, void* tag)>;

// One ModelInfer call, from its bytes to its bytes:
//   waiting → arrived → [its model is loaded →] (read_request, submit to the model) → respond() on a worker → answered.
// Owns itself; goes when it is accepted, the answer is on its way and gRPC said the call is over.
class InferCall final : public InferSink {
 public:
  static void wait(ServerState& state, const StartInfer& start, CallQueue queue);

  void respond(InferResult result, bool is_final) override;
  bool is_cancelled() const override { return is_cancelled_.load(std::memory_order_relaxed); }

 private:
  InferCall(ServerState& state, const StartInfer& start, CallQueue queue);
  void on_arrived(bool ok);
  void on_done(bool ok);
  void on_answered(bool ok);
  void on_loaded(bool ok);
  void accept();
  bool waits_for_model(absl::Status& refused);
  void answer(const InferResult& result, const grpc::ByteBuffer& response);
  void release();

  ServerState& state_;
  const StartInfer& start_;
  LiveCall live_;
  CallQueue queue_;
  grpc::ServerContext context_;
  grpc::ByteBuffer request_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_{&context_};
  MemberTag<InferCall> arrived_{this, &InferCall::on_arrived};
  MemberTag<InferCall> done_{this, &InferCall::on_done};
  MemberTag<InferCall> answered_{this, &InferCall::on_answered};
  MemberTag<InferCall> loaded_{this, &InferCall::on_loaded};
  std::unique_ptr<grpc::Alarm> alarm_;  // brings the call back to its queue when the model is loaded
  int waits_left_ = 3;                  // for its model; others may take the memory again

  InferTicket ticket_;
  int64_t answered_ns_ = 0;  // when the answer was given to gRPC
  std::atomic<bool> is_cancelled_{false};
  std::atomic<ModelVersion*> submitted_to_{nullptr};  // the ticket's model, from when the request may be there
  std::atomic<int> steps_left_{3};                    // accepted, done and answered
};

}  // namespace tensord::server
