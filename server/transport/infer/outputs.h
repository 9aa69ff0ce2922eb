#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/executor/model/model_version.h"
#include "server/memory/shared_regions.h"
#include "server/transport/grpc/request_limits.h"

namespace tensord::server {

// How to return a request's outputs, and the client memory that its inputs are in.
struct OutputPlan {
  struct Output {
    std::string name;
    int64_t classes = 0;               // 0: return the tensor itself
    std::optional<SharedRange> range;  // where to write its data; none: into the response
  };
  std::vector<Output> outputs;            // outputs that are not returned as they are
  std::vector<SharedRange> input_ranges;  // shared memory of the request's inputs
  bool is_empty() const { return outputs.empty() && input_ranges.empty(); }
};

// Where the model may write outputs directly: shared memory that nothing else in the request uses; on GPUs if the model
// takes_device_tensors().
std::vector<OutputPlace> output_places(const OutputPlan& plan, bool takes_device_tensors = false);

// Applies the plan: computes classes, writes to shared memory, and copies outputs that share memory with an input,
// which the client may change. Returns which of `outputs` have their data in shared memory; empty: none. Adds to
// `copied_bytes`, and charges the strings of classes before they are made. Throws Error: kInternal if the shared memory
// is too small, kFailedPrecondition if it, or an input's, was unregistered.
std::vector<bool> place_outputs(const OutputPlan& plan, const ModelVersion& model, std::vector<InferTensor>& outputs,
                                uint64_t& copied_bytes, RequestLimits::Admission* admission = nullptr);

}  // namespace tensord::server
