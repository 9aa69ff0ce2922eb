#include "server/executor/strategies/execution_strategy.h"

#include "core/base/error.h"
#include "server/executor/model/generation_options.h"
#include "server/executor/strategies/ensemble_plan.h"
#include "server/executor/strategies/sequence_strategy.h"

namespace tensord::server {

std::unique_ptr<ExecutionStrategy> make_strategy(const StrategyContext& context) {
  if (context.config.is_ensemble()) return make_ensemble_strategy(context);
  generation_options(context.config);  // refuses unknown options
  if (const auto& sequences = context.config.sequence_batching) {
    check(!context.config.is_decoupled || sequences->is_iterative,
          "the decoupled transaction policy with sequence_batching needs iterative_sequence");
    return sequences->is_iterative ? make_generation_strategy(context) : make_sequence_strategy(context);
  }
  if (context.config.is_decoupled) return make_decoupled_strategy(context);
  return make_batch_strategy(context);
}

}  // namespace tensord::server
