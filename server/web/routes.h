#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "core/base/work_thread.h"
#include "server/http/handler.h"
#include "server/web/status_json.h"

namespace tensord::server {

// Whether GET of this path is answered without the server being asked for more than its state: for probes.
bool is_health_path(std::string_view path);
bool is_web_path(const WebSources& sources, std::string_view path);

// Answers a GET of these paths:
//   /metrics                                   Prometheus, as text or protobuf
//   /v2/health/live, /v2/health/ready          200, or 503 as long as the server does not take requests
//   /v2/models/NAME[/versions/VERSION]/ready   the same for a model, whatever others are like; 400 for no version
//   /, /status.json                            the status page and what it polls, unless it is off
// Health has the JSON bodies of KServe's protocol.
HttpAnswer answer_request(const WebSources& sources, const HttpHead& head);

// A port that has nothing but these paths. Health is answered by the port's own threads, all else by another one, so
// that no probe waits for metrics.
class WebHandler final : public HttpHandler {
 public:
  // An answer refuses the request.
  using Refuse = std::function<std::optional<HttpAnswer>(const HttpHead& head)>;

  // `sources` must outlive this; `refuse` may be empty.
  WebHandler(const WebSources& sources, Refuse refuse) : sources_(sources), refuse_(std::move(refuse)) {}

  std::optional<HttpAnswer> admit(const HttpHead& head, BodyPlan& plan) override;
  void handle(std::shared_ptr<HttpExchange> exchange) override;

 private:
  const WebSources& sources_;
  const Refuse refuse_;
  WorkThread thread_;  // last: its work uses the rest
};

}  // namespace tensord::server
