// Replaces server/rest in rest_cost_bench.py: a daemon without the REST protocol.
#include "core/base/error.h"
#include "server/rest/handler.h"

namespace tensord::server {

RestHandler::RestHandler(ServerState& state, WebHandler& web, HttpMemoryQuota quota)
    : state_(state), web_(web), context_{state, work_, std::move(quota)} {
  check(false, "this daemon was linked without the REST protocol");
}

std::optional<HttpAnswer> RestHandler::admit(const HttpHead&, BodyPlan&) { return std::nullopt; }
void RestHandler::handle(std::shared_ptr<HttpExchange>) {}

}  // namespace tensord::server
