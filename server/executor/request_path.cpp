#include "server/executor/request_path.h"

#include "core/base/error.h"

namespace tensord::server {

std::unique_ptr<RequestPath> make_request_path(const PathContext& context) {
  check(!context.config.is_ensemble(), "platform 'ensemble' is not supported");
  check(!context.config.sequence_batching, "sequence_batching is not supported");
  check(!context.config.is_decoupled, "the decoupled transaction policy is not supported");
  return make_batch_path(context);
}

}  // namespace tensord::server
