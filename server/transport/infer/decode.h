#pragma once

#include "server/executor/model/model.h"
#include "server/memory/shared_regions.h"
#include "server/scheduler/core_budget.h"
#include "server/transport/grpc/request_limits.h"
#include "server/transport/infer/message.h"

namespace tensord::server {

struct DecodedInputs {
  std::vector<InferTensor> inputs;    // in the order of the request
  std::vector<size_t> input_indices;  // index of each in the signature
  uint64_t copied_bytes = 0;          // payload that could not be used in place
};

struct DecodeOptions {
  std::vector<SharedRange> ranges =
      {};                    // by input; without a region, its data is in the message. Empty: all are in the message
  bool may_scatter = false;  // the model accepts InferTensor::scattered
  bool may_be_on_device = false;  // the model accepts tensors on GPUs
  CoreBudget* cores = nullptr;    // for copies of several MB; null: the calling thread makes them
  // Charged with what inputs need beyond the message, before it is allocated: an empty string has four bytes there.
  // Shared memory costs nothing. Null: nothing is charged.
  RequestLimits::Admission* admission = nullptr;
};

// Validates the inputs of a request against a model's signature and makes tensors of them. A tensor whose bytes are
// contiguous in the message and aligned is used in place and keeps `wire.owner` alive; others are copied once.
// Floating-point data in shared memory is used in place as well; other data is copied, because the client may change it
// after it was checked. Data on a GPU stays there if the model accepts it. Sizes are checked before anything is
// allocated. Throws Error{kInvalidArgument} with the protocol's messages, {kFailedPrecondition} if shared memory is
// gone.
DecodedInputs decode_inputs(const InferMessage& message, const WireMessage& wire, const Signature& signature,
                            const DecodeOptions& options = {});

}  // namespace tensord::server
