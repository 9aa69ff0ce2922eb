#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "server/executor/requests/request_capture.h"
#include "server/memory/shared_regions.h"
#include "server/repository/repository.h"
#include "server/tracing/tracer.h"
#include "server/transport/access/access.h"
#include "server/transport/grpc/header_forward.h"
#include "server/transport/grpc/request_limits.h"

namespace tensord::server {

class TrainingService;

// A handler of calls about one model: as requests do, they wait for one that is loaded on demand.
template <class Handler>
struct OnDemand {
  Repository& repository;
  Handler handler;

  template <class Request>
  bool waits(const Request& request, std::function<void()> resume) const {
    return repository.load_on_demand(request.name(), std::move(resume));
  }
  template <class Request, class Response>
  void operator()(const Request& request, Response& response) const {
    handler(request, response);
  }
};

template <class Handler>
OnDemand<Handler> on_demand(Repository& repository, Handler handler) {
  return {repository, std::move(handler)};
}

// What every call may ask about the daemon. Thread-safe.
struct ServerState {
  Repository& repository;
  Metrics& metrics;
  Tracer& tracer;
  RequestCapture& capture;
  std::string id;
  std::string version;
  bool strict_readiness = true;
  TrainingService* training = nullptr;  // null: the daemon does not train
  AccessPolicy access = {};
  RequestLimits limits = {};
  SharedRegions shared_memory{false};
  HeaderForward forwarded_headers{""}, forwarded_http_headers{""};
  uint64_t http_max_input_bytes = 0;  // of JSON, and of a tensor in it; 0: no limit
  size_t stream_max_requests = 1024;
  std::atomic<bool> is_leaving{false};   // the end was announced: nobody should send anything here any more
  std::atomic<bool> is_draining{false};  // and nothing is taken

  // Takes requests: models are loaded (all of them READY when strict), and no end in sight.
  bool is_ready() const {
    return !is_leaving && (strict_readiness ? repository.is_all_ready() : repository.is_loaded());
  }
};

}  // namespace tensord::server
