#pragma once

#include <string>

#include "server/web/http_server.h"
#include "server/web/status_json.h"

namespace tensord::server {

// Answers a GET of these paths:
//   /metrics                                   Prometheus, as text or protobuf
//   /v2/health/live, /v2/health/ready          200, or 503 as long as the server does not take requests
//   /v2/models/NAME[/versions/VERSION]/ready   the same for a model, whatever others are like; 400 for no version
//   /, /status.json                            the status page and what it polls, unless it is off
HttpAnswer answer_request(const WebSources& sources, const HttpRequest& request);

}  // namespace tensord::server
