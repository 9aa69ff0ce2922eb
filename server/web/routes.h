#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "core/base/work_thread.h"
#include "server/http/handler.h"
#include "server/web/status_json.h"

namespace tensord::server {

// Whether GET of this path is a health probe, which reads nothing but the server's state.
bool is_health_path(std::string_view path);
// Whether the answer to GET of this path describes a model as the call ModelConfig does, and needs the access of it.
bool is_model_status_path(std::string_view path);
bool is_web_path(const WebSources& sources, std::string_view path);

// Answers GET of these paths:
//     /metrics                                   Prometheus metrics, as text or protobuf
//     /v2/health/live, /v2/health/ready          200, or 503 while the server does not accept requests
//     /v2/models/NAME[/versions/VERSION]/ready   the same for one model; 400 for a malformed version
//     /, /page/FILE                              the status page, unless turned off, and the data that it polls:
//     /status.json                               the state of everything
//     /status/models/NAME[/versions/VERSION]     signature and configuration of a model
//     /status/jobs/ID                            curves of a training job
// Health answers have the JSON bodies of KServe's protocol.
HttpAnswer answer_request(const WebSources& sources, const HttpHead& head);

// Serves the metrics port, which has only these paths. Health is answered on the port's own threads and everything else
// on another thread, so that probes never wait for metrics.
class WebHandler final : public HttpHandler {
 public:
  // Returns an answer to refuse the request.
  using Refuse = std::function<std::optional<HttpAnswer>(const HttpHead& head)>;

  // `sources` must outlive this object; `refuse` may be empty.
  WebHandler(const WebSources& sources, Refuse refuse) : sources_(sources), refuse_(std::move(refuse)) {}

  std::optional<HttpAnswer> admit(const HttpHead& head, BodyPlan& plan) override;
  void handle(std::shared_ptr<HttpExchange> exchange) override;

 private:
  const WebSources& sources_;
  const Refuse refuse_;
  WorkThread thread_;  // declared last: its tasks use the other members
};

}  // namespace tensord::server
