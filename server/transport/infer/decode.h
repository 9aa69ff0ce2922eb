#pragma once

#include "server/executor/model/model.h"
#include "server/memory/shared_regions.h"
#include "server/scheduler/core_budget.h"
#include "server/transport/grpc/request_limits.h"
#include "server/transport/infer/message.h"

namespace tensord::server {

struct DecodedInputs {
  std::vector<InferTensor> inputs;    // in the order of the request
  std::vector<size_t> input_indices;  // of each: which of the signature it is
  uint64_t copied_bytes = 0;          // payload that could not be used where it lay
};

struct DecodeOptions {
  std::vector<SharedRange> ranges = {};  // one for each input; without a region: its data is in the message. Empty: all
  bool may_scatter = false;              // the model takes InferTensor::scattered
  CoreBudget* cores = nullptr;           // for copies of some MB; null: they are made by the calling thread
  // Counts what inputs take beside the message before it is taken: an empty text is four bytes there, memory of clients
  // is none. Null: nothing is counted.
  RequestLimits::Admission* admission = nullptr;
};

// Checks the inputs of a request against a model and makes tensors of them. A tensor that lies in one piece of the
// message, aligned to its elements, is used there and keeps `wire.owner` alive; others are copied once. Floating point
// numbers in shared memory are used there too; all else is copied out, for the client may change it after it was
// checked, and so is what lies on a GPU. Nothing is allocated before sizes are proven to match the bytes that are
// there. Throws Error{kInvalidArgument} with the protocol's texts, {kFailedPrecondition} when shared memory is gone.
DecodedInputs decode_inputs(const InferMessage& message, const WireMessage& wire, const Signature& signature,
                            const DecodeOptions& options = {});

}  // namespace tensord::server
