#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "server/metrics/metrics.h"
#include "server/repository/repository.h"

namespace tensord::server {

class TrainingService;

// Where the HTTP port takes its answers from. All of it outlives the port; everything is asked on its threads.
struct WebSources {
  const Repository& repository;
  const Metrics& metrics;
  const TrainingService* training = nullptr;  // null: the daemon does not train
  std::string version;
  std::function<bool()> is_ready;    // the server as a whole takes requests
  std::function<bool()> is_leaving;  // its end was announced
  int64_t started_unix_ms = 0;
  bool has_status_page = true;
};

// What the status page shows, as one JSON object: `server`, `bucket_limits` (seconds), `models` (state, counts and
// histograms of every version), `memory` (bytes by owner), `pool` and `jobs` with their curves, thinned to a few
// hundred points each.
std::string status_json(const WebSources& sources);

}  // namespace tensord::server
