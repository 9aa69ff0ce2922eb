#pragma once

#include <memory>
#include <string>

#include "server/config/model_config.h"
#include "server/executor/model/model.h"
#include "server/scheduler/batch_policy.h"
#include "server/scheduler/rate_limiter.h"

namespace tensord::server {

// How a model's requests wait and share batches, by its `dynamic_batching`; without it one at a time, and each may say
// how long it waits. `default_queue_size` is for queues without max_queue_size. Throws Error{kInvalidArgument} naming
// the field.
BatchRules make_batch_rules(const ModelConfig& config, const Signature& signature, size_t default_queue_size);

// The model's part in the limits; null where there are none, or the model needs no resources.
std::unique_ptr<RateLimiter::Client> make_rate_limiter_client(RateLimiter* limiter, const std::string& model,
                                                              const ModelConfig& config);

}  // namespace tensord::server
