#pragma once

#include <memory>

#include "server/config/model_config.h"
#include "server/executor/model/model.h"
#include "server/scheduler/batch_policy.h"
#include "server/scheduler/rate_limiter.h"

namespace tensord::server {

struct StrategyContext;

// Queue and batching rules from `dynamic_batching`. Without that field, requests run one at a time and may set their
// own queue timeout. `default_queue_size` applies to queues without max_queue_size. Throws Error{kInvalidArgument}
// naming the field.
BatchRules make_batch_rules(const ModelConfig& config, const Signature& signature, size_t default_queue_size);

// The model as a client of the rate limiter; null if rate limiting is off or the model needs no resources.
std::unique_ptr<RateLimiter::Client> make_rate_limiter_client(const StrategyContext& context);

}  // namespace tensord::server
