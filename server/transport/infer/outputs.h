#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/executor/model/model_version.h"
#include "server/memory/shared_regions.h"
#include "server/transport/grpc/request_limits.h"

namespace tensord::server {

// What a request wants done with its outputs before they leave, and the memory of the client that its inputs lie in.
struct OutputPlan {
  struct Output {
    std::string name;
    int64_t classes = 0;               // 0: the tensor itself
    std::optional<SharedRange> range;  // where its data goes; none: into the response
  };
  std::vector<Output> outputs;            // those that something is done with
  std::vector<SharedRange> input_ranges;  // that tensors of the request lie in
  bool is_empty() const { return outputs.empty() && input_ranges.empty(); }
};

// Where the model itself may write outputs: in shared memory that nothing else of the request lies in.
std::vector<OutputPlace> output_places(const OutputPlan& plan);

// Carries the plan out: classes instead of tensors, data written to shared memory, outputs that lie in an input's
// memory copied, as the client may change that. Which of `outputs` have their data elsewhere then; empty: none. Adds to
// `copied_bytes`, and counts the texts of classes before they are made. Throws Error: kInternal when the shared memory
// is too small, kFailedPrecondition when it, or that of an input, was taken away.
std::vector<bool> place_outputs(const OutputPlan& plan, const ModelVersion& model, std::vector<InferTensor>& outputs,
                                uint64_t& copied_bytes, RequestLimits::Admission* admission = nullptr);

}  // namespace tensord::server
