#include "server/executor/paths/request_path.h"

#include "core/base/error.h"
#include "server/executor/model/generation_options.h"
#include "server/executor/paths/ensemble_plan.h"
#include "server/executor/paths/sequence_path.h"

namespace tensord::server {

std::unique_ptr<RequestPath> make_request_path(const PathContext& context) {
  if (context.config.is_ensemble()) return make_ensemble_path(context);
  generation_options(context.config);  // refuses what it does not know
  if (const auto& sequences = context.config.sequence_batching) {
    check(!context.config.is_decoupled || sequences->is_iterative,
          "the decoupled transaction policy with sequence_batching needs iterative_sequence");
    return sequences->is_iterative ? make_generation_path(context) : make_sequence_path(context);
  }
  if (context.config.is_decoupled) return make_decoupled_path(context);
  return make_batch_path(context);
}

}  // namespace tensord::server
