#include "server/transport/infer/infer_call.h"

#include "core/base/delay_point.h"
#include "server/executor/requests/status.h"
#include "server/transport/grpc/grpc_status.h"

namespace tensord::server {

InferCall::InferCall(const CallQueue& queue, ServerState& state, const StartInfer& start)
    : GrpcCall(queue, {CallGroup::kInference, nullptr, /*hears_end=*/true}), state_(state), start_(start) {
  request_context_.wait_start_ns = Clock::system().now_ns();
}

void InferCall::ask(void* tag) { start_(&context(), &request_, &writer_, queue().queue, tag); }

std::shared_ptr<GrpcCall> InferCall::successor() const { return std::make_shared<InferCall>(queue(), state_, start_); }

void InferCall::refuse(const grpc::Status& status) { writer_.FinishWithError(status, finish_tag()); }

void InferCall::accept() {
  const uint64_t size_bytes = request_.Length();
  InferRequest request;
  InferResult refused;
  try {
    read_request(state_, request_, context(), request_context_, request);
  } catch (...) {
    refused.status = current_exception_status();
    refused.times.arrived_ns = request_context_.arrived_ns;
  }
  if (!refused.status.ok() && waits_for_model(refused.status)) return;
  request_.Clear();
  request_context_.metrics->add_received(size_bytes);
  request_context_.metrics->add_in_flight(1);
  if (!refused.status.ok()) {
    answer(refused, {});
  } else {
    submitted_to_ = request_context_.model.get();
    request_context_.model->submit(std::move(request), *this);
    // The call was cancelled during submit(): on_over() may have run before the model had the request.
    if (is_cancelled_) request_context_.model->record_cancelled();
  }
}

// Waits for a model that can be loaded on demand. The request is parsed again once the model is loaded.
bool InferCall::waits_for_model(absl::Status& refused) {
  if (request_context_.model || waits_left_ == 0) return false;
  bool waits = false;
  loaded_.begin();
  try {
    --waits_left_;
    waits = state_.repository.load_on_demand(request_context_.model_name, [this] {
      if (!alarm_) alarm_ = std::make_unique<grpc::Alarm>();
      alarm_->Set(queue().queue, gpr_now(GPR_CLOCK_MONOTONIC), loaded_.tag());
    });
  } catch (...) {
    refused = current_exception_status();
  }
  if (!waits) loaded_.call_off();
  return waits;
}

void InferCall::on_loaded(bool) { accept(); }

void InferCall::respond(InferResult result, bool) {
  grpc::ByteBuffer response;
  if (result.status.ok()) {
    try {
      write_response(request_context_, result).Swap(&response);  // an assignment would copy
    } catch (...) {
      result.status = current_exception_status();
    }
  }
  result.outputs.clear();
  request_context_.plan = {};  // frees an unregistered region before the client has its answer
  answer(result, response);
}

void InferCall::answer(const InferResult& result, const grpc::ByteBuffer& response) {
  TENSORD_DELAY("infer.answer");
  request_context_.metrics->count_answer(result.times, static_cast<int>(result.status.code()),
                                         std::string(result.status.message()));
  request_context_.metrics->add_in_flight(-1);
  request_context_.telemetry.record_answer(result.times, result.status);
  log_request(request_context_, "grpc", result.status);
  answered_ns_ = Clock::system().now_ns();
  // The call may be destroyed after this line, because its events run on another thread.
  if (result.status.ok()) {
    writer_.Finish(response, grpc::Status::OK, finish_tag());
  } else {
    refuse(to_grpc_status(result.status));
  }
}

void InferCall::on_over() {
  TENSORD_DELAY("infer.done");
  if (!context().IsCancelled()) return;
  is_cancelled_ = true;
  if (ModelVersion* const model = submitted_to_) model->record_cancelled();
}

void InferCall::on_finished() { request_context_.telemetry.record_sent(answered_ns_); }

}  // namespace tensord::server
