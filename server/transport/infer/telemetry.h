#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "server/executor/model/model_version.h"
#include "server/executor/requests/request_capture.h"
#include "server/tracing/tracer.h"
#include "server/transport/grpc/server_state.h"

namespace tensord::server {

// What is noted of a request beside counting it: its trace, and whether it is kept in a file. Empty for most requests,
// and then every call here is a test of two pointers. Part of the request context.
class RequestTelemetry {
 public:
  RequestTelemetry() = default;
  // The request is read and its inputs are decoded. Sets request.trace.
  RequestTelemetry(ServerState& state, std::string_view traceparent, const TransportStamps& transport,
                   const ModelVersion& model, int64_t wait_start_ns, int64_t arrived_ns, InferRequest& request);

  // One answer is there, before its outputs are encoded.
  void record_response(const InferResult& result) const;
  // After the final answer was counted in the model's metrics.
  void record_answer(const RequestTimes& times, const absl::Status& status) const;
  // The answer was given to gRPC at `start_ns` and is sent now. Unary calls only.
  void record_sent(int64_t start_ns) const;
  // The answer is given to HTTP now; to be called when it is sent. Empty: nobody wants to know.
  std::function<void()> sent_later() const;

 private:
  std::shared_ptr<RequestTrace> trace_;
  std::shared_ptr<CapturedRequest> capture_;
};

}  // namespace tensord::server
