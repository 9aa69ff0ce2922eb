#pragma once

#include <memory>
#include <string>

#include "core/tensor/allocator.h"
#include "server/executor/model/class_labels.h"
#include "server/executor/model/learned_signature.h"
#include "server/executor/model/model.h"
#include "server/executor/model/model_workers.h"
#include "server/executor/strategies/execution_strategy.h"
#include "server/metrics/metrics.h"

namespace tensord::server {

class ResponseCache;
class WorkerPool;

// A loaded model with its execution strategy. The constructor warms up every worker. Thread-safe. Must not be destroyed
// by one of its own workers.
class ModelVersion {
 public:
  struct Options {
    int workers = 1;
    int threads_per_worker = 1;    // a run may get fewer, see `cores`
    CoreBudget* cores = nullptr;   // shared with other models; null: every run gets all its threads
    size_t max_queue_size = 1024;  // for queues without a configured size
    std::vector<WarmupRequest> warmup = {};
    const ModelDirectory* directory = nullptr;          // looks up the models of an ensemble's steps
    std::vector<const HostPlacement*> placements = {};  // by worker, null: anywhere; empty: none has one
    RateLimiter* rate_limiter = nullptr;
    WorkerPool* pool = nullptr;                      // threads shared with other models; null: a pool of its own
    ResponseCache* cache = nullptr;                  // null: no response cache
    int warmup_nice = 0;                             // nice value of the threads that warm up; see run_with_nice
    std::shared_ptr<const void> metrics_owner = {};  // kept alive as long as this object
  };

  // Throws Error if a configured warm-up request fails or the configuration is invalid.
  ModelVersion(std::string name, int64_t version, std::unique_ptr<const Model> model, ModelConfig config,
               Options options, ModelMetrics& metrics);
  ~ModelVersion();

  const std::string& name() const { return name_; }
  const std::string& version() const { return version_text_; }
  const Signature& signature() const { return request_signature_; }  // as requests see it
  // The signature with what the graph and the first answered request add, for clients that ask how to build a request.
  Signature described() const { return learned_.described(request_signature_); }
  const ModelConfig& config() const { return config_; }
  // Warnings of the model and of its warm-up.
  const std::vector<std::string>& warnings() const { return warnings_; }
  ModelMetrics& metrics() const { return metrics_; }
  const PrecisionChoice& precision() const { return model_->precision(); }
  OwnerId owner() const { return owner_; }
  size_t workers() const { return workers_.size(); }
  PlanCounts plan_counts() const { return model_->plan_counts(); }

  // See ExecutionStrategy. The sink's owner records the final answer in metrics().
  void submit(InferRequest&& request, InferSink& sink) {
    InferSink& asking = learned_.is_complete() ? sink : learned_.watch(request, sink);
    strategy_->submit(std::move(request), asking);
  }
  void record_cancelled() { strategy_->record_cancelled(); }
  // The configured labels of an output; empty if there are none.
  const std::vector<std::string>& class_labels(const std::string& output) const;
  bool gathers_inputs() const { return strategy_->gathers_inputs(); }
  bool takes_device_tensors() const { return strategy_->takes_device_tensors(); }

 private:
  const std::string name_;
  const std::string version_text_;
  const std::unique_ptr<const Model> model_;
  const ModelConfig config_;
  Signature request_signature_;  // set by the constructor
  const ClassLabels class_labels_;
  const std::shared_ptr<const void> metrics_owner_;
  ModelMetrics& metrics_;
  const OwnerId owner_;
  LearnedSignature learned_;
  ModelWorkers workers_;
  std::vector<std::string> warnings_;
  std::unique_ptr<ExecutionStrategy> strategy_;  // last: its threads use the other members
};

}  // namespace tensord::server
