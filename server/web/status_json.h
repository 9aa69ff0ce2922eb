#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "server/metrics/metrics.h"
#include "server/repository/repository.h"

namespace tensord::server {

class TrainingService;

// What the answers of the HTTP ports are made of. Every member outlives the port and is called on the port's threads.
struct WebSources {
  const Repository& repository;
  const Metrics& metrics;
  const TrainingService* training = nullptr;  // null if training is off
  std::string version;
  std::function<bool()> is_ready;    // whether the server as a whole accepts requests
  std::function<bool()> is_leaving;  // whether shutdown was announced
  int64_t started_unix_ms = 0;
  bool has_status_page = true;
};

// The data of the status page as one JSON object: `server`, `bucket_limits` (seconds), `models` (state, counters and
// histograms of each version), `memory` (bytes by owner), `pool`, and `jobs` with their curves, downsampled to a few
// hundred points each.
std::string status_json(const WebSources& sources);

}  // namespace tensord::server
