#include "server/transport/infer/telemetry.h"

#include "core/base/clock.h"
#include "server/executor/requests/trace_tensors.h"

namespace tensord::server {

RequestTelemetry::RequestTelemetry(ServerState& state, std::string_view traceparent, const TransportStamps& transport,
                                   const ModelVersion& model, int64_t wait_start_ns, int64_t arrived_ns,
                                   InferRequest& request)
    : trace_(state.tracer.is_on() ? state.tracer.start({.model = model.name(),
                                                        .version = model.version(),
                                                        .request_id = request.id,
                                                        .traceparent = traceparent,
                                                        .transport = transport,
                                                        .read_start_ns = wait_start_ns,
                                                        .arrived_ns = arrived_ns})
                                  : nullptr),
      capture_(state.capture.start(model.name(), model.version(), model.signature(), request)) {
  if (!trace_) return;
  request.trace = trace_;
  trace_tensors(*trace_, TensorActivity::kInput, request.inputs);
}

void RequestTelemetry::record_response(const InferResult& result) const {
  if (!result.status.ok()) return;
  if (trace_) {
    trace_->record_response(Clock::system().now_ns());
    trace_tensors(*trace_, TensorActivity::kOutput, result.outputs);
  }
  if (capture_) capture_->add_outputs(result.outputs);
}

void RequestTelemetry::record_answer(const RequestTimes& times, const absl::Status& status) const {
  if (trace_) {
    const auto message = status.message();
    trace_->record_answer(times, static_cast<int>(status.code()), {message.data(), message.size()});
  }
  if (capture_ && status.ok()) capture_->keep();
}

void RequestTelemetry::record_sent(int64_t start_ns) const {
  if (trace_) trace_->record_sent(start_ns, Clock::system().now_ns());
}

std::function<void()> RequestTelemetry::sent_later() const {
  if (!trace_) return nullptr;
  return
      [trace = trace_, start_ns = Clock::system().now_ns()] { trace->record_sent(start_ns, Clock::system().now_ns()); };
}

}  // namespace tensord::server
