#pragma once

#include <memory>

#include "server/executor/strategies/execution_strategy.h"

namespace tensord::server {

// Requests of sequences, for models with sequence_batching: each sequence stays on one worker, which runs one request
// of each of its sequences at a time, together in a batch. Throws Error for a configuration that cannot be.
std::unique_ptr<ExecutionStrategy> make_sequence_strategy(const StrategyContext& context);

// Requests that a model works on step by step (sequence_batching.iterative_sequence): each joins the running batch
// between two steps and leaves it when it is done. Throws Error for a configuration that cannot be.
std::unique_ptr<ExecutionStrategy> make_generation_strategy(const StrategyContext& context);

// Requests that are answered with any number of responses: the items of the list that the model returns.
std::unique_ptr<ExecutionStrategy> make_decoupled_strategy(const StrategyContext& context);

}  // namespace tensord::server
