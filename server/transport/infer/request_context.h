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

// What the answers to a request need of it. Filled as far as the request could be read.
struct RequestContext {
  std::shared_ptr<ModelVersion> model;        // null: it names none that is there
  ModelMetrics* metrics = nullptr;            // never null once the request is read
  std::string id, model_name, model_version;  // as the client sent them
  int64_t wait_start_ns = 0;                  // on Clock::system(): its bytes were waited for; 0: not known
  int64_t arrived_ns = 0;
  RequestLimits::Admission admission = {};  // counts as long as this is there
  bool takes_many_responses = false;        // set before: the call is a stream
  bool wants_empty_final_response = false;
  OutputPlan plan;
  RequestTelemetry telemetry;  // its trace, and its copy in a file
};

// What a request came with beside its message.
class RequestOrigin {
 public:
  virtual ~RequestOrigin() = default;
  // On Clock::system().
  virtual int64_t deadline_ns(int64_t now_ns) const = 0;
  // The header of that name; empty: none.
  virtual std::string_view traceparent() const = 0;
  virtual const TransportStamps& stamps() const = 0;
  virtual void add_forwarded_headers(const ServerState& state, ParameterMap& parameters) const = 0;
  // Why a model that may give many responses cannot be asked so.
  virtual const char* decoupled_refusal() const = 0;
};

// Finds the model of a request that was taken apart, checks the request against it and decodes its inputs, where they
// lie if that can be: `wire` is what the message's readers point into. `request_context.metrics`, `.arrived_ns` and
// `.admission` are set. Throws Error with what is to be answered; `request_context` and `request` are filled as far as
// it came.
void accept_message(ServerState& state, InferMessage&& message, const WireMessage& wire, const RequestOrigin& origin,
                    RequestContext& request_context, InferRequest& request);

// Does with a result's outputs what the request wants done before they leave; which of them have their data elsewhere
// then, empty: none. The caller counts what is copied. What is made is counted in `admission` first. REQUIRES:
// request_context.model. Throws Error.
std::vector<bool> finish_outputs(const RequestContext& request_context, InferResult& result,
                                 RequestLimits::Admission& admission);

// Takes the bytes of a ModelInferRequest apart, which are plain ones afterwards, finds its model, checks it and decodes
// its inputs, where they lie if that can be. Its deadline is that of the call. Throws Error with what is to be
// answered; `request_context` and `request` are filled as far as it came, with metrics in any case.
void read_request(ServerState& state, grpc::ByteBuffer& bytes, const grpc::ServerContext& context,
                  RequestContext& request_context, InferRequest& request);

// The bytes of a ModelInferResponse. The outputs' memory leaves with them as it is. Counts what is sent and copied, and
// the answer itself among the bytes under way until the request context goes. Throws Error when it cannot be sent.
// REQUIRES: request_context.model.
grpc::ByteBuffer write_response(RequestContext& request_context, InferResult& result);

// The bytes of a ModelStreamInferResponse: the same, and `triton_final_response`; or an error message with what the
// request was. What cannot be sent becomes an error, in `result.status`. Throws Error{kResourceExhausted} where
// `admission`, which counts the response, has no room for it.
grpc::ByteBuffer write_stream_response(const RequestContext& request_context, InferResult& result, bool is_final,
                                       RequestLimits::Admission& admission);

}  // namespace tensord::server
