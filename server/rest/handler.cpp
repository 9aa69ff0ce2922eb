#include "server/rest/handler.h"

#include <charconv>
#include <string_view>

#include "core/base/error.h"
#include "server/executor/requests/status.h"
#include "server/rest/control.h"
#include "server/rest/input_limits.h"
#include "server/rest/rest_status.h"
#include "server/transport/access/http_access.h"

namespace tensord::server {
namespace {

// "/v2", "/v1/models/m", "/v12"; "/version" is none.
bool is_protocol_path(std::string_view path) {
  if (path.size() < 3 || path[0] != '/' || (path[1] != 'v' && path[1] != 'V')) return false;
  const size_t end = path.find_first_not_of("0123456789", 2);
  return end != 2 && (end == path.npos || path[end] == '/');
}

HttpAnswer refuse_path(std::string_view path) {
  const std::string_view protocol = path.substr(1, path.find('/', 1) - 1);
  if (protocol == "v2") {
    return error_answer(404,
                        "Not Found: this path is none of the protocol v2, as POST /v2/models/NAME/infer is; GET "
                        "/v2/openapi.json has all");
  }
  return error_answer(404, concat("the protocol ", protocol, " is not served; v2 is, as POST /v2/models/NAME/infer"));
}

}  // namespace

RestHandler::RestHandler(ServerState& state, WebHandler& web, HttpMemoryQuota quota)
    : state_(state), web_(web), context_{state, work_, std::move(quota)} {}

std::optional<HttpAnswer> RestHandler::admit(const HttpHead& head, BodyPlan& plan) {
  const std::optional<RestTarget> target = parse_target(head.path);
  if (!target) {
    const bool is_health = is_health_path(head.path);
    if (!is_health && is_protocol_path(head.path)) return refuse_path(head.path);
    // Every other path here returns names of models, jobs or files, so it needs the access of statistics.
    const CallGroup group = is_health                         ? CallGroup::kHealth
                            : is_model_status_path(head.path) ? CallGroup::kModelConfig
                                                              : CallGroup::kStatistics;
    if (auto refused = refuse_call(state_.access, head, group)) return refused;
    return web_.admit(head, plan);
  }
  if (!target->takes(head.method)) {
    HttpAnswer refused = error_answer(405, "Method Not Allowed");
    refused.headers.push_back({"Allow", std::string(target->methods)});
    return refused;
  }
  if (auto refused = refuse_call(state_.access, head, target->group)) return refused;
  if (state_.is_draining && target->group == CallGroup::kInference) {
    return error_answer(503, "HTTP server is shutting down and has stopped accepting new requests.");
  }
  if (auto refused = refuse_length(*target, head, state_.http_max_input_bytes)) return refused;
  plan.max_bytes = state_.limits.max_message_bytes();
  const std::string_view json = head.header(kJsonLengthHeader);
  std::from_chars(json.data(), json.data() + json.size(), plan.aligned_at);
  return std::nullopt;
}

void RestHandler::handle(std::shared_ptr<HttpExchange> exchange) {
  std::optional<RestTarget> target = parse_target(exchange->head().path);
  if (!target) return web_.handle(std::move(exchange));
  switch (target->call) {
    case RestCall::kInfer:
    case RestCall::kGenerate:
    case RestCall::kGenerateStream: return RestInfer::start(context_, std::move(exchange), std::move(*target));
    case RestCall::kModelMetadata:
    case RestCall::kModelConfig:
      // Metadata and readiness calls wait for a model that loads on demand, as inference requests do.
      try {
        if (state_.repository.load_on_demand(target->name,
                                             [this, exchange, target = *target] { answer_later(exchange, target); })) {
          return;
        }
      } catch (...) {
        return exchange->answer(error_answer(current_exception_status()));
      }
      break;
    default: break;
  }
  answer_later(std::move(exchange), std::move(*target));
}

WorkThread& RestHandler::thread_of(RestCall call) {
  switch (call) {
    case RestCall::kIndex: return repository_threads_.index;
    case RestCall::kLoad: return repository_threads_.loads;
    case RestCall::kUnload: return repository_threads_.unloads;
    default: return work_;
  }
}

void RestHandler::answer_later(std::shared_ptr<HttpExchange> exchange, RestTarget target) {
  thread_of(target.call).post([this, exchange = std::move(exchange), target = std::move(target)] {
    if (exchange->is_gone()) return;
    try {
      BodyText joined;
      RequestLimits::Admission admission = state_.limits.charge(0);
      const bool is_in_pieces = exchange->body().pieces().size() > 1;
      if (is_in_pieces) admission.grow(exchange->body().size_bytes());
      const CallCharge charge(admission, [&exchange] { return exchange->is_gone(); });
      const bool is_post = exchange->head().method == "POST";
      exchange->answer(answer_control(state_, target, is_post, exchange->body().whole(joined), charge));
    } catch (...) {
      exchange->answer(error_answer(current_exception_status()));
    }
  });
}

}  // namespace tensord::server
