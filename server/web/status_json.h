#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
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
  // Where clients reach the other ports, for the examples of the page.
  struct Ports {
    std::string grpc;         // "0.0.0.0:8001" or "unix:/path"
    int http = 0;             // 0: the port is off
    int metrics = 0;          // 0: the port is off
    bool has_tls = false;     // on the gRPC port
    bool has_tokens = false;  // calls need a token
  };
  std::function<Ports()> ports;
  // {"metadata": …, "config": …} of a version that is served. Throws Error as Repository::find.
  std::function<nlohmann::ordered_json(const std::string& name, const std::string& version)> describe;
};

// The state of everything as one JSON object, which the status page polls: `server`, `process`, `bucket_limits`
// (seconds), `models` (state, counters, histograms and last failure of each version), `memory` (bytes by owner),
// `pool`, and the newest `jobs`.
std::string status_json(const WebSources& sources);

// A version that is served, with what does not change while it is: metadata, configuration, warnings. Throws Error as
// Repository::find.
std::string model_status_json(const WebSources& sources, const std::string& name, const std::string& version);

// The curves of a job, each downsampled to at most a thousand points. Throws Error as TrainingService::find.
std::string job_status_json(const WebSources& sources, const std::string& id);

}  // namespace tensord::server
