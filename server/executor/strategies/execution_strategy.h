#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/config/model_config.h"
#include "server/executor/model/model_workers.h"
#include "server/executor/requests/request.h"
#include "server/metrics/metrics.h"

namespace tensord::server {

class ModelVersion;
class RateLimiter;
class WorkerPool;

// Looks up the model version that a request is sent to. Thread-safe.
class ModelDirectory {
 public:
  virtual ~ModelDirectory() = default;
  // Throws Error as Repository::find does.
  virtual std::shared_ptr<ModelVersion> find(const std::string& name, const std::string& version) const = 0;
};

// What a strategy needs. Everything must outlive it.
struct StrategyContext {
  const std::string& model;  // its name, for messages
  const ModelConfig& config;
  const Signature& signature;
  ModelWorkers* workers = nullptr;  // null: nothing runs (an ensemble)
  ModelMetrics& metrics;
  const ModelDirectory* directory = nullptr;  // looks up the models of an ensemble's steps
  RateLimiter* rate_limiter = nullptr;        // null: no rate limiting
  size_t default_queue_size = 1024;           // for queues without a configured size
  WorkerPool* pool = nullptr;                 // threads to run on; null: a pool of its own
};

// How a model's requests are queued, batched and run. Thread-safe.
class ExecutionStrategy {
 public:
  virtual ~ExecutionStrategy() = default;
  // Takes ownership of `request`. `sink` must live until its final respond(), which may happen before this returns, on
  // this thread. Does not throw.
  virtual void submit(InferRequest&& request, InferSink& sink) = 0;
  // Called when a submitted request was cancelled, so that it is answered now if it is still queued.
  virtual void record_cancelled() = 0;
  // Whether inputs may be passed as InferTensor::scattered.
  virtual bool gathers_inputs() const { return false; }
  // Whether inputs may be on a device, and outputs too, where the request has a place on a device for them.
  virtual bool takes_device_tensors() const { return false; }
  // Rejects new and queued requests with UNAVAILABLE, and returns when the running ones have ended.
  virtual void stop() = 0;
};

// The default: one request per worker at a time, or with dynamic_batching one batch.
std::unique_ptr<ExecutionStrategy> make_batch_strategy(const StrategyContext& context);

// The strategy that the configuration asks for. Throws Error if it is not possible.
std::unique_ptr<ExecutionStrategy> make_strategy(const StrategyContext& context);

}  // namespace tensord::server
