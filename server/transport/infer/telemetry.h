#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "server/executor/model/model_version.h"
#include "server/executor/requests/request_capture.h"
#include "server/tracing/tracer.h"
#include "server/transport/grpc/server_state.h"

namespace tensord::server {

// Records a request beyond its metrics: its trace, and its copy in a capture file. Empty for most requests; every
// function then only tests two pointers. Part of the request context.
class RequestTelemetry {
 public:
  RequestTelemetry() = default;
  // Call when the inputs are decoded. Sets request.trace.
  RequestTelemetry(ServerState& state, std::string_view traceparent, const TransportStamps& transport,
                   const ModelVersion& model, int64_t wait_start_ns, int64_t arrived_ns, InferRequest& request);

  // Call for each answer, before its outputs are encoded.
  void record_response(const InferResult& result) const;
  // Call after the final answer was counted in the model's metrics.
  void record_answer(const RequestTimes& times, const absl::Status& status) const;
  // Unary gRPC calls only: the answer was passed to gRPC at `start_ns` and is sent now.
  void record_sent(int64_t start_ns) const;
  // HTTP only: the answer is passed on now; call the result when it is sent. Empty: nothing to record.
  std::function<void()> sent_later() const;

 private:
  std::shared_ptr<RequestTrace> trace_;
  std::shared_ptr<CapturedRequest> capture_;
};

}  // namespace tensord::server
