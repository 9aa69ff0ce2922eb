#include "server/web/routes.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/tensor/cuda/runtime.h"
#include "server/http/compression.h"
#include "server/web/status_page.h"

namespace tensord::server {
namespace {

using nlohmann::json;

constexpr std::string_view kModels = "/v2/models/", kReady = "/ready";
constexpr uint64_t kMaxBodyBytes = 1 << 16;  // bodies are discarded

HttpAnswer json_answer(int status, const json& body) {
  HttpAnswer answer = HttpAnswer::text(status, body.dump(-1, ' ', false, json::error_handler_t::replace));
  answer.type = "application/json";
  return answer;
}

HttpAnswer health(const char* what, bool is_well) { return json_answer(is_well ? 200 : 503, {{what, is_well}}); }

HttpAnswer readiness(bool is_ready) {
  if (const std::string why = cuda::why_lost(); !why.empty())
    return json_answer(503, {{"ready", false}, {"error", why}});
  return health("ready", is_ready);
}

// `model` is the NAME[/versions/VERSION] part of /v2/models/…/ready.
HttpAnswer model_health(const WebSources& sources, std::string_view model) {
  constexpr std::string_view kVersions = "/versions/";
  std::string version;
  if (const size_t at = model.rfind(kVersions); at != std::string_view::npos) {
    version = model.substr(at + kVersions.size());
    model = model.substr(0, at);
  }
  try {
    // Same as ModelReady over gRPC: the state of other models does not matter.
    const bool is_ready = !sources.is_leaving() && sources.repository.is_ready(std::string(model), version);
    return json_answer(is_ready ? 200 : 503, {{"name", model}, {"ready", is_ready}});
  } catch (const Error& error) {
    return json_answer(400, {{"error", error.what()}});  // the version is malformed
  }
}

bool is_model_health(std::string_view path) {
  return path.starts_with(kModels) && path.ends_with(kReady) && path.size() > kModels.size() + kReady.size();
}

// The page loads nothing from other origins and must not be framed.
void add_page_headers(HttpAnswer& answer) {
  answer.headers.push_back({"Cache-Control", "no-store"});
  answer.headers.push_back({"X-Content-Type-Options", "nosniff"});
  answer.headers.push_back(
      {"Content-Security-Policy",
       "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
       "img-src data:; frame-ancestors 'none'"});
}

HttpAnswer route(const WebSources& sources, const HttpHead& head) {
  const std::string& path = head.path;
  if (path == "/metrics") {
    Metrics::Exposition metrics = sources.metrics.exposition(std::string(head.header("Accept")));
    HttpAnswer answer = HttpAnswer::text(200, std::move(metrics.body));
    answer.type = std::move(metrics.content_type);
    answer.headers.push_back({"Vary", "Accept, Accept-Encoding"});
    deflate_answer(preferred_coding(head.header("Accept-Encoding")), {}, answer);
    return answer;
  }
  if (path == "/v2/health/live") return health("live", true);
  if (path == "/v2/health/ready") return readiness(sources.is_ready());
  if (is_model_health(path)) {
    return model_health(sources,
                        std::string_view(path).substr(kModels.size(), path.size() - kModels.size() - kReady.size()));
  }
  if (sources.has_status_page && path == "/") {
    HttpAnswer answer = HttpAnswer::text(200, kStatusPage);
    answer.type = "text/html; charset=utf-8";
    return answer;
  }
  if (sources.has_status_page && path == "/status.json") {
    HttpAnswer answer = HttpAnswer::text(200, status_json(sources));
    answer.type = "application/json";
    return answer;
  }
  return HttpAnswer::text(404, "not found\n");
}

}  // namespace

bool is_health_path(std::string_view path) { return path.starts_with("/v2/health/") || is_model_health(path); }

bool is_web_path(const WebSources& sources, std::string_view path) {
  return path == "/metrics" || is_health_path(path) ||
         (sources.has_status_page && (path == "/" || path == "/status.json"));
}

HttpAnswer answer_request(const WebSources& sources, const HttpHead& head) {
  HttpAnswer answer;
  try {
    answer = route(sources, head);
  } catch (const std::exception& error) {
    answer = HttpAnswer::text(500, concat(error.what(), "\n"));
  }
  add_page_headers(answer);
  return answer;
}

std::optional<HttpAnswer> WebHandler::admit(const HttpHead& head, BodyPlan& plan) {
  plan.max_bytes = kMaxBodyBytes;
  if (head.method != "GET" && head.method != "HEAD") {
    HttpAnswer refused = HttpAnswer::text(405, "only GET and HEAD are answered here\n");
    refused.headers.push_back({"Allow", "GET, HEAD"});
    return refused;
  }
  return refuse_ ? refuse_(head) : std::nullopt;
}

void WebHandler::handle(std::shared_ptr<HttpExchange> exchange) {
  if (is_health_path(exchange->head().path)) return exchange->answer(answer_request(sources_, exchange->head()));
  thread_.post(
      [this, exchange = std::move(exchange)] { exchange->answer(answer_request(sources_, exchange->head())); });
}

}  // namespace tensord::server
