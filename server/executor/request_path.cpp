#include "server/executor/request_path.h"

#include "core/base/error.h"
#include "server/executor/ensemble_plan.h"

namespace tensord::server {

std::unique_ptr<RequestPath> make_request_path(const PathContext& context) {
  if (context.config.is_ensemble()) return make_ensemble_path(context);
  check(!context.config.sequence_batching, "sequence_batching is not supported");
  check(!context.config.is_decoupled, "the decoupled transaction policy is not supported");
  return make_batch_path(context);
}

}  // namespace tensord::server
