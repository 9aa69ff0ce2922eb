#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "server/executor/model_version.h"
#include "server/transport/infer_outputs.h"
#include "server/transport/infer_watch.h"
#include "server/transport/server_state.h"

namespace tensord::server {

// What the answers to a request need of it. Filled as far as the request could be read.
struct InferTicket {
  std::shared_ptr<ModelVersion> model;        // null: it names none that is there
  ModelMetrics* metrics = nullptr;            // never null once the request is read
  std::string id, model_name, model_version;  // as the client sent them
  int64_t wait_start_ns = 0;                  // on Clock::system(): its bytes were waited for; 0: not known
  int64_t arrived_ns = 0;
  RequestLimits::Admission admission = {};  // counts as long as this is there
  bool takes_many_responses = false;        // set before: the call is a stream
  bool wants_empty_final_response = false;
  OutputPlan plan;
  InferWatch watch;  // its trace, and its copy in a file
};

// Takes the bytes of a ModelInferRequest apart, which are plain ones afterwards, finds its model, checks it and decodes
// its inputs, where they lie if that can be. Its deadline is that of the call. Throws Error with what is to be
// answered; `ticket` and `request` are filled as far as it came, with metrics in any case.
void read_request(ServerState& state, grpc::ByteBuffer& bytes, const grpc::ServerContext& context, InferTicket& ticket,
                  InferRequest& request);

// The bytes of a ModelInferResponse. The outputs' memory leaves with them as it is. Counts what is sent and copied, and
// the answer itself among the bytes under way until the ticket goes. Throws Error when it cannot be sent.
// REQUIRES: ticket.model.
grpc::ByteBuffer write_response(InferTicket& ticket, InferResult& result);

// The bytes of a ModelStreamInferResponse: the same, and `triton_final_response`; or an error message with what the
// request was. Does not throw: what cannot be sent becomes an error, in `result.status`.
grpc::ByteBuffer write_stream_response(const InferTicket& ticket, InferResult& result, bool is_final);

}  // namespace tensord::server
