#pragma once

#include <string>
#include <vector>

#include "server/executor/requests/request.h"
#include "server/transport/infer/message.h"

namespace tensord::server {

// Where the data of an input lies, or that of an output is to go, when not in the message.
struct SharedPlace {
  std::string region;
  uint64_t offset = 0, size_bytes = 0;
  bool is_none() const { return region.empty(); }
};

// What parameters say beyond the InferRequest.
struct TransportParameters {
  // An output that does not go out as it is.
  struct Output {
    std::string name;
    int64_t classes = 0;  // wants so many of the largest values, as texts; 0: the tensor
    SharedPlace place;
  };
  bool wants_empty_final_response = false;  // of a decoupled model, where its last response was not known to be that
  std::vector<SharedPlace> input_places;    // one for each input; empty: all are in the message
  std::vector<Output> outputs;              // empty: all go out as they are
};

// Checks the parameters of a request, its inputs and its requested outputs by the protocol's rules, and takes them into
// `request`: priority, timeout, sequence, and those that the protocol does not know as they are. Throws
// Error{kInvalidArgument} for wrong types and values and for reserved names.
TransportParameters read_parameters(const InferMessage& message, InferRequest& request);

}  // namespace tensord::server
