#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"
#include "server/transport/infer/message.h"

namespace tensord::server {

// A StreamDataRequest taken apart; its inputs are like those of ModelInfer. Readers point into the message.
struct TrainingBatch {
  std::string job_id;
  std::optional<int64_t> number;
  bool is_complete = false;
  bool has_tensors = false;
  InferMessage tensors;
};

// Throws Error{kInvalidArgument} on malformed messages. `admission` counts what is made, here and below; null: nothing
// does.
TrainingBatch parse_training_batch(const WireMessage& message, RequestLimits::Admission* admission = nullptr);
// The arrays, where they lie in the message when they lie in one piece. Throws Error{kInvalidArgument}.
std::vector<std::pair<std::string, Tensor>> decode_training_batch(const TrainingBatch& batch,
                                                                  const WireMessage& message,
                                                                  RequestLimits::Admission* admission = nullptr);

}  // namespace tensord::server
