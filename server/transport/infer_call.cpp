#include "server/transport/infer_call.h"

#include <chrono>

#include "server/executor/status.h"
#include "server/transport/byte_buffer.h"
#include "server/transport/grpc_status.h"
#include "server/transport/infer_encode.h"
#include "server/transport/infer_parameters.h"

namespace tensord::server {
namespace {

void release_tensor(void* tensor) { delete static_cast<Tensor*>(tensor); }

// The payload leaves as a slice that keeps its tensor alive.
grpc::ByteBuffer to_byte_buffer(const EncodedResponse& response) {
  std::vector<grpc::Slice> slices;
  for (const auto& [head, payload] : response.pieces) {
    if (!head.empty()) slices.emplace_back(head);
    if (payload.defined()) {
      slices.emplace_back(payload.raw_data(), payload.size_bytes(), release_tensor, new Tensor(payload));
    }
  }
  return {slices.data(), slices.size()};
}

}  // namespace

void InferCall::wait(ServerState& state, const StartInfer& start, CallQueue queue) {
  new InferCall(state, start, queue);
}

InferCall::InferCall(ServerState& state, const StartInfer& start, CallQueue queue)
    : state_(state), start_(start), live_(queue), queue_(queue), metrics_(&state.metrics.unknown_model()) {
  context_.AsyncNotifyWhenDone(static_cast<EventTag*>(&done_));
  start_(&context_, &request_, &writer_, queue_.queue, static_cast<EventTag*>(&arrived_));
}

void InferCall::on_arrived(bool ok) {
  if (!ok) {
    delete this;
    return;
  }
  wait(state_, start_, queue_);
  accept();
}

void InferCall::accept() {
  arrived_ns_ = Clock::system().now_ns();
  const uint64_t size_bytes = request_.Length();
  InferRequest request;
  InferResult refused;
  refused.times.arrived_ns = arrived_ns_;
  try {
    request = decode();
  } catch (...) {
    refused.status = current_exception_status();
  }
  request_.Clear();
  metrics_->add_received(size_bytes);
  metrics_->add_in_flight(1);
  if (!refused.status.ok()) {
    answer(refused, {});
  } else {
    model_->submit(std::move(request), *this);
  }
}

InferRequest InferCall::decode() {
  const WireMessage wire = to_wire_message(request_);
  InferMessage message = parse_infer_message(wire);
  model_ = state_.repository.find(message.model_name, message.model_version);
  metrics_ = &model_->metrics();
  id_ = std::move(message.id);

  const RequestParameters parameters = check_parameters(message);
  InferRequest request;
  request.id = id_;
  request.arrived_ns = arrived_ns_;
  request.queue_timeout_us = static_cast<uint64_t>(parameters.timeout_us);
  for (auto& output : message.outputs) request.requested_outputs.push_back(std::move(output.name));
  check_requested_outputs(model_->signature(), model_->name(), request.requested_outputs);
  const MemoryOwnerScope owner_scope(model_->owner());
  DecodedInputs decoded = decode_inputs(message, wire, model_->signature());
  metrics_->add_copied(decoded.copied_bytes);
  request.inputs = std::move(decoded.inputs);
  request.input_indices = std::move(decoded.input_indices);
  request.deadline_ns = deadline_ns();
  if (model_->signature().max_batch_size > 0 && !request.inputs.empty()) {
    request.batch_size = request.inputs.front().shape[0];
  }
  return request;
}

int64_t InferCall::deadline_ns() const {
  using std::chrono::system_clock;
  int64_t deadline = kNoDeadline;
  if (context_.deadline() != system_clock::time_point::max()) {
    const auto left = context_.deadline() - system_clock::now();
    const int64_t left_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    if (__builtin_add_overflow(arrived_ns_, left_ns, &deadline)) deadline = kNoDeadline;
  }
  return deadline;
}

void InferCall::respond(InferResult result, bool) {
  grpc::ByteBuffer response;
  if (result.status.ok()) {
    try {
      const MemoryOwnerScope owner_scope(model_->owner());
      const EncodedResponse encoded = encode_response(model_->name(), model_->version(), id_, result.outputs);
      response = to_byte_buffer(encoded);
      metrics_->add_copied(encoded.copied_bytes + result.copied_bytes);
      metrics_->add_sent(encoded.size_bytes);
    } catch (...) {
      result.status = current_exception_status();
    }
  }
  result.outputs.clear();
  answer(result, response);
}

void InferCall::answer(const InferResult& result, const grpc::ByteBuffer& response) {
  metrics_->count_answer(result.times, static_cast<int>(result.status.code()));
  metrics_->add_in_flight(-1);
  // After this line the call may be gone: its events run on another thread.
  if (result.status.ok()) {
    writer_.Finish(response, grpc::Status::OK, static_cast<EventTag*>(&answered_));
  } else {
    writer_.FinishWithError(to_grpc_status(result.status), static_cast<EventTag*>(&answered_));
  }
}

void InferCall::on_done(bool) {
  if (context_.IsCancelled()) {
    is_cancelled_.store(true, std::memory_order_relaxed);
    if (model_) model_->note_cancelled();
  }
  release();
}

void InferCall::on_answered(bool) { release(); }

void InferCall::release() {
  if (events_left_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

}  // namespace tensord::server
