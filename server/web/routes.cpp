#include "server/web/routes.h"

#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "server/web/status_page.h"

namespace tensord::server {
namespace {

HttpAnswer health(bool is_well) { return {.status = is_well ? 200 : 503, .body = {}}; }

// NAME[/versions/VERSION] of /v2/models/…/ready.
HttpAnswer model_health(const WebSources& sources, std::string_view model) {
  constexpr std::string_view kVersions = "/versions/";
  std::string version;
  if (const size_t at = model.rfind(kVersions); at != std::string_view::npos) {
    version = model.substr(at + kVersions.size());
    model = model.substr(0, at);
  }
  try {
    // As the gRPC call: what other models are like does not matter.
    return health(!sources.is_draining() && sources.repository.is_ready(std::string(model), version));
  } catch (const Error& error) {
    return {.status = 400, .body = concat(error.what(), "\n")};  // the version is none
  }
}

}  // namespace

HttpAnswer answer_request(const WebSources& sources, const HttpRequest& request) {
  const std::string& path = request.path;
  constexpr std::string_view kModels = "/v2/models/", kReady = "/ready";
  if (path == "/metrics") {
    Metrics::Exposition metrics = sources.metrics.exposition(request.accept);
    return {.type = std::move(metrics.content_type), .body = std::move(metrics.body)};
  }
  if (path == "/v2/health/live") return health(true);
  if (path == "/v2/health/ready") return health(sources.is_ready());
  if (path.starts_with(kModels) && path.ends_with(kReady) && path.size() > kModels.size() + kReady.size()) {
    return model_health(sources,
                        std::string_view(path).substr(kModels.size(), path.size() - kModels.size() - kReady.size()));
  }
  if (sources.has_status_page && path == "/") return {.type = "text/html; charset=utf-8", .body = kStatusPage};
  if (sources.has_status_page && path == "/status.json") {
    return {.type = "application/json", .body = status_json(sources)};
  }
  return {.status = 404, .body = "not found\n"};
}

}  // namespace tensord::server
