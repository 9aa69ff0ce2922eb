#pragma once

#include "server/executor/model.h"
#include "server/executor/model_version.h"
#include "server/transport/infer_message.h"

namespace tensord::server {

struct DecodedInputs {
  std::vector<InferTensor> inputs;    // in the order of the request
  std::vector<size_t> input_indices;  // of each: which of the signature it is
  uint64_t copied_bytes = 0;          // payload that could not be used where it lay
};

// Checks the inputs of a request against a model and makes tensors of them. A tensor that
// lies in one piece of the message, aligned to its elements, is used there and keeps
// `wire.owner` alive; others are copied once. Nothing is allocated before sizes are proven
// to match the bytes that are there. Throws Error{kInvalidArgument} with the protocol's texts.
DecodedInputs decode_inputs(const InferMessage& message, const WireMessage& wire, const Signature& signature);

}  // namespace tensord::server
