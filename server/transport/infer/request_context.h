#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/executor/model/model_version.h"
#include "server/transport/grpc/server_state.h"
#include "server/transport/infer/message.h"
#include "server/transport/infer/outputs.h"
#include "server/transport/infer/telemetry.h"

namespace tensord::server {

// What the answers to a request need to know of it. Filled as far as the request could be read.
struct RequestContext {
  std::shared_ptr<ModelVersion> model;        // null: the model does not exist
  ModelMetrics* metrics = nullptr;            // not null once the request was read
  std::string id, model_name, model_version;  // as sent by the client
  int64_t wait_start_ns = 0;                  // on Clock::system(): when waiting for its bytes began; 0: unknown
  int64_t arrived_ns = 0;
  RequestLimits::Admission admission = {};  // released with this object
  bool takes_many_responses = false;        // set by the caller: the call is a stream
  bool wants_empty_final_response = false;
  OutputPlan plan;
  RequestTelemetry telemetry;  // its trace and its captured copy
};

// What a request has beside its message.
class RequestOrigin {
 public:
  virtual ~RequestOrigin() = default;
  // On Clock::system().
  virtual int64_t deadline_ns(int64_t now_ns) const = 0;
  // The header of that name; may be empty.
  virtual std::string_view traceparent() const = 0;
  virtual const TransportStamps& stamps() const = 0;
  virtual void add_forwarded_headers(const ServerState& state, ParameterMap& parameters) const = 0;
  // The error for a decoupled model that cannot be called in this way.
  virtual const char* decoupled_refusal() const = 0;
};

// Looks up the model of a parsed request, validates the request and decodes its inputs, in place if possible; `wire` is
// the message that the readers point into. Sets `request_context.metrics`, `.arrived_ns` and `.admission`. Throws Error
// with the answer; `request_context` and `request` are then filled as far as possible.
void accept_message(ServerState& state, InferMessage&& message, const WireMessage& wire, const RequestOrigin& origin,
                    RequestContext& request_context, InferRequest& request);

// Applies the request's output plan to a result. Returns which outputs have their data in shared memory; empty: none.
// The caller counts copied bytes. New memory is charged to `admission` first. REQUIRES: request_context.model. Throws
// Error.
std::vector<bool> finish_outputs(const RequestContext& request_context, InferResult& result,
                                 RequestLimits::Admission& admission);

// Decompresses and parses a ModelInferRequest, looks up its model, validates it and decodes its inputs, in place if
// possible. Its deadline is the call's. Throws Error with the answer; `request_context` (with metrics) and `request`
// are then filled as far as possible.
void read_request(ServerState& state, grpc::ByteBuffer& bytes, const grpc::ServerContext& context,
                  RequestContext& request_context, InferRequest& request);

// With --log-requests: logs the final answer to a request. `protocol`: "grpc", "grpc_stream" or "http".
void log_request(const RequestContext& request_context, const char* protocol, const absl::Status& status);

// Serializes a ModelInferResponse; outputs are sent from their own memory. Counts sent and copied bytes, and charges
// the answer until the request context is destroyed. Throws Error if it cannot be sent. REQUIRES:
// request_context.model.
grpc::ByteBuffer write_response(RequestContext& request_context, InferResult& result);

// Serializes a ModelStreamInferResponse, with `triton_final_response`, or an error. A result that cannot be sent
// becomes an error in `result.status`. Throws Error{kResourceExhausted} if `admission`, which is charged with the
// response, is exhausted.
grpc::ByteBuffer write_stream_response(const RequestContext& request_context, InferResult& result, bool is_final,
                                       RequestLimits::Admission& admission);

}  // namespace tensord::server
