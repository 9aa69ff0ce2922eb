#include "server/web/routes.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/tensor/cuda/runtime.h"
#include "server/http/compression.h"
#include "server/web/page_files.h"

namespace tensord::server {
namespace {

using nlohmann::json;

constexpr std::string_view kModels = "/v2/models/", kReady = "/ready", kVersions = "/versions/";
constexpr std::string_view kModelStatus = "/status/models/", kJobStatus = "/status/jobs/";
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

struct NamedVersion {
  std::string name, version;  // version empty: not given
};

// Of the NAME[/versions/VERSION] part of a path.
NamedVersion parse_model(std::string_view path) {
  const size_t at = path.rfind(kVersions);
  if (at == std::string_view::npos) return {std::string(path), {}};
  return {std::string(path.substr(0, at)), std::string(path.substr(at + kVersions.size()))};
}

HttpAnswer model_health(const WebSources& sources, const NamedVersion& model) {
  try {
    // Same as ModelReady over gRPC: the state of other models does not matter.
    const bool is_ready = !sources.is_leaving() && sources.repository.is_ready(model.name, model.version);
    return json_answer(is_ready ? 200 : 503, {{"name", model.name}, {"ready", is_ready}});
  } catch (const Error& error) {
    return json_answer(400, {{"error", error.what()}});  // the version is malformed
  }
}

bool is_model_health(std::string_view path) {
  return path.starts_with(kModels) && path.ends_with(kReady) && path.size() > kModels.size() + kReady.size();
}

// The page has no inline scripts or styles, loads nothing from other origins and must not be framed.
void add_page_headers(HttpAnswer& answer) {
  answer.headers.push_back({"Cache-Control", "no-store"});
  answer.headers.push_back({"X-Content-Type-Options", "nosniff"});
  answer.headers.push_back({"Referrer-Policy", "no-referrer"});
  answer.headers.push_back({"Content-Security-Policy",
                            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                            "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"});
}

HttpAnswer packed_answer(const HttpHead& head, HttpAnswer answer) {
  answer.headers.push_back({"Vary", "Accept, Accept-Encoding"});
  deflate_answer(preferred_coding(head.header("Accept-Encoding")), {}, answer);
  return answer;
}

HttpAnswer status_answer(const HttpHead& head, std::string json_text) {
  HttpAnswer answer = HttpAnswer::text(200, std::move(json_text));
  answer.type = "application/json";
  return packed_answer(head, std::move(answer));
}

// Calls `make` for the JSON of one model or job, which may not exist.
template <class Make>
HttpAnswer one_status(const HttpHead& head, const Make& make) {
  try {
    return status_answer(head, make());
  } catch (const Error& error) {
    const int status = error.code() == ErrorCode::kNotFound ? 404 : error.code() == ErrorCode::kUnavailable ? 503 : 400;
    return json_answer(status, {{"error", error.what()}});
  }
}

HttpAnswer page_file_answer(const HttpHead& head, const PageFile& file) {
  HttpAnswer answer;
  answer.type = file.type;
  answer.headers.push_back({"Vary", "Accept-Encoding"});
  if (preferred_coding(head.header("Accept-Encoding")) == Coding::kGzip) {
    answer.headers.push_back({"Content-Encoding", "gzip"});
    answer.body.push_back({.text = {}, .memory = file.gzipped});
  } else {
    std::vector<std::shared_ptr<const void>> holds;
    const BodyText plain = inflate_body(Coding::kGzip, {file.gzipped}, kMaxPageFileBytes, {}, holds);
    answer.body.push_back({std::string(reinterpret_cast<const char*>(plain.data()), plain.size())});
  }
  return answer;
}

// The status page's files and data; none: another path.
std::optional<HttpAnswer> page_route(const WebSources& sources, const HttpHead& head) {
  const std::string_view path = head.path;
  if (const PageFile* file = find_page_file(path)) return page_file_answer(head, *file);
  if (path == "/status.json") return status_answer(head, status_json(sources));
  if (is_model_status_path(path)) {
    const NamedVersion model = parse_model(path.substr(kModelStatus.size()));
    return one_status(head, [&] { return model_status_json(sources, model.name, model.version); });
  }
  if (path.starts_with(kJobStatus)) {
    return one_status(head, [&] { return job_status_json(sources, std::string(path.substr(kJobStatus.size()))); });
  }
  return std::nullopt;
}

HttpAnswer route(const WebSources& sources, const HttpHead& head) {
  const std::string& path = head.path;
  if (path == "/metrics") {
    Metrics::Exposition metrics = sources.metrics.exposition(std::string(head.header("Accept")));
    HttpAnswer answer = HttpAnswer::text(200, std::move(metrics.body));
    answer.type = std::move(metrics.content_type);
    return packed_answer(head, std::move(answer));
  }
  if (path == "/v2/health/live") return health("live", true);
  if (path == "/v2/health/ready") return readiness(sources.is_ready());
  if (is_model_health(path)) {
    const size_t length = path.size() - kModels.size() - kReady.size();
    return model_health(sources, parse_model(std::string_view(path).substr(kModels.size(), length)));
  }
  if (sources.has_status_page) {
    if (std::optional<HttpAnswer> answer = page_route(sources, head)) return std::move(*answer);
  }
  return HttpAnswer::text(404, "not found\n");
}

}  // namespace

bool is_health_path(std::string_view path) { return path.starts_with("/v2/health/") || is_model_health(path); }

bool is_model_status_path(std::string_view path) { return path.starts_with(kModelStatus); }

bool is_web_path(const WebSources& sources, std::string_view path) {
  return path == "/metrics" || is_health_path(path) ||
         (sources.has_status_page && (find_page_file(path) || path == "/status.json" || path.starts_with("/status/")));
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
