#pragma once

#include <memory>

#include "server/executor/strategies/execution_strategy.h"

namespace tensord::server {

// sequence_batching: each sequence stays on one worker, which runs at most one request per sequence in a batch. Throws
// Error for an invalid configuration.
std::unique_ptr<ExecutionStrategy> make_sequence_strategy(const StrategyContext& context);

// sequence_batching.iterative_sequence, for token-by-token generation: a request joins the running batch between two
// steps and leaves it when it is done. Throws Error for an invalid configuration.
std::unique_ptr<ExecutionStrategy> make_generation_strategy(const StrategyContext& context);

// Decoupled models: a request is answered with any number of responses, which are the items of the list that the model
// returns.
std::unique_ptr<ExecutionStrategy> make_decoupled_strategy(const StrategyContext& context);

}  // namespace tensord::server
