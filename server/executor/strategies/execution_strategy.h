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

// Finds the version of a model that requests get. Thread-safe.
class ModelDirectory {
 public:
  virtual ~ModelDirectory() = default;
  // Throws Error as Repository::find does.
  virtual std::shared_ptr<ModelVersion> find(const std::string& name, const std::string& version) const = 0;
};

// What a path is made of; all of it outlives the path.
struct StrategyContext {
  const std::string& model;  // its name, for messages
  const ModelConfig& config;
  const Signature& signature;
  ModelWorkers* workers = nullptr;  // null: the model has none (an ensemble)
  ModelMetrics& metrics;
  const ModelDirectory* directory = nullptr;  // of the models that an ensemble's steps run
  RateLimiter* rate_limiter = nullptr;        // null: no limits
  size_t default_queue_size = 1024;           // where the configuration says nothing
  WorkerPool* pool = nullptr;                 // of the threads that run it; null: some of its own
};

// The way of a model's requests from their submission to their answers: a queue, and who works on it. Thread-safe.
class ExecutionStrategy {
 public:
  virtual ~ExecutionStrategy() = default;
  // Takes what `request` holds. `sink` must live until its final respond(); that may be before this returns, on this
  // thread. Does not throw.
  virtual void submit(InferRequest&& request, InferSink& sink) = 0;
  // A request that was submitted is cancelled: if it still waits it is to be answered now.
  virtual void record_cancelled() = 0;
  // Whether inputs may come as InferTensor::scattered.
  virtual bool gathers_inputs() const { return false; }
  // Takes no more requests (UNAVAILABLE), answers those that wait so, and returns when those that run have ended.
  virtual void stop() = 0;
};

// One request, or one batch of them, at a time for each worker: the default, and dynamic batching.
std::unique_ptr<ExecutionStrategy> make_batch_strategy(const StrategyContext& context);

// The path that the configuration asks for. Throws Error for one that cannot be.
std::unique_ptr<ExecutionStrategy> make_strategy(const StrategyContext& context);

}  // namespace tensord::server
