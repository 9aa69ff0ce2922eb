#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "core/tensor/cuda/runtime.h"
#include "server/executor/requests/request_capture.h"
#include "server/memory/shared_regions.h"
#include "server/repository/repository.h"
#include "server/tracing/tracer.h"
#include "server/transport/access/access.h"
#include "server/transport/grpc/header_forward.h"
#include "server/transport/grpc/request_limits.h"

namespace tensord::server {

class TrainingService;

// Handler of a call about one model: like an inference request, it waits for a model that is loaded on demand.
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

// What calls need of the daemon. Thread-safe.
struct ServerState {
  Repository& repository;
  Metrics& metrics;
  Tracer& tracer;
  RequestCapture& capture;
  std::string id;
  std::string version;
  bool strict_readiness = true;
  TrainingService* training = nullptr;  // null: training is disabled
  AccessPolicy access = {};
  RequestLimits limits = {};
  SharedRegions shared_memory{false};
  HeaderForward forwarded_headers{""}, forwarded_http_headers{""};
  uint64_t http_max_input_bytes = 0;  // limit of a JSON body and of a tensor in it; 0: no limit
  size_t stream_max_requests = 1024;
  std::atomic<bool> is_leaving{false};   // the shutdown was announced: clients should go elsewhere
  std::atomic<bool> is_draining{false};  // requests are rejected

  // Whether the server takes requests: models are loaded (with strict readiness all of them), there is no shutdown, and
  // no GPU is lost.
  bool is_ready() const {
    return !is_leaving && *cuda::why_lost() == 0 &&
           (strict_readiness ? repository.is_all_ready() : repository.is_loaded());
  }
};

}  // namespace tensord::server
