#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"
#include "server/transport/infer/message.h"

namespace tensord::server {

// A parsed StreamDataRequest; its inputs are like those of ModelInfer. Readers point into the message.
struct TrainingBatch {
  std::string job_id;
  std::optional<int64_t> number;
  bool is_complete = false;
  bool has_tensors = false;
  InferMessage tensors;
};

// Throws Error{kInvalidArgument} for malformed messages. `admission` is charged with what is allocated, here and below;
// null: nothing is charged.
TrainingBatch parse_training_batch(const WireMessage& message, RequestLimits::Admission* admission = nullptr);
// The arrays, in place if they are contiguous in the message. Throws Error{kInvalidArgument}.
std::vector<std::pair<std::string, Tensor>> decode_training_batch(const TrainingBatch& batch,
                                                                  const WireMessage& message,
                                                                  RequestLimits::Admission* admission = nullptr);

}  // namespace tensord::server
