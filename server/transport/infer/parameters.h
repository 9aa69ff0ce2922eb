#pragma once

#include <string>
#include <vector>

#include "server/executor/requests/request.h"
#include "server/transport/infer/message.h"

namespace tensord::server {

// Where an input's data is, or an output's data should go, outside of the message.
struct SharedPlace {
  std::string region;
  uint64_t offset = 0, size_bytes = 0;
  bool is_none() const { return region.empty(); }
};

// Parameters that do not belong into an InferRequest.
struct TransportParameters {
  // An output that is not returned as it is.
  struct Output {
    std::string name;
    int64_t classes = 0;  // return that many of the largest values as strings; 0: the tensor
    SharedPlace place;
  };
  bool wants_empty_final_response =
      false;  // decoupled models: send an empty final response if the last data response was not known to be final
  std::vector<SharedPlace> input_places;  // by input; empty: all are in the message
  std::vector<Output> outputs;            // empty: return all outputs as they are
};

// Validates the parameters of a request, its inputs and its requested outputs by the protocol's rules, and stores
// priority, timeout, sequence and unknown parameters in `request`. Throws Error{kInvalidArgument} for wrong types,
// invalid values and reserved names.
TransportParameters read_parameters(const InferMessage& message, InferRequest& request);

}  // namespace tensord::server
