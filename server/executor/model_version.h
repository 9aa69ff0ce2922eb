#pragma once

#include <absl/status/status.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/tensor/allocator.h"
#include "server/executor/model.h"
#include "server/executor/warmup.h"
#include "server/metrics/metrics.h"
#include "server/scheduler/core_budget.h"
#include "server/scheduler/scheduler.h"

namespace tensord::server {

struct InferResult {
  absl::Status status;
  std::vector<InferTensor> outputs;
  uint64_t copied_bytes = 0;
};

// Who waits for a result. finish() is called exactly once, on any thread, and must not throw.
class InferSink {
 public:
  virtual ~InferSink() = default;
  virtual void finish(InferResult result) = 0;
  virtual bool is_cancelled() const = 0;
};

// A request whose inputs are checked and decoded.
struct InferRequest {
  std::vector<InferTensor> inputs;
  std::vector<size_t> input_indices;  // of each input: which of the signature it is
  std::vector<std::string> requested_outputs;
  int64_t deadline_ns = kNoDeadline;  // on Clock::system()
};

// A loaded model with its queue and its workers, each with a session of its own. Runs share
// no lock. Thread-safe. Must not be destroyed by one of its own workers. Made, it is warm: every
// worker has run the warm-up requests.
class ModelVersion {
 public:
  struct Options {
    int workers = 1;
    int threads_per_worker = 1;   // a run may get fewer of `cores`
    CoreBudget* cores = nullptr;  // shared with other models; null: every run gets its threads
    size_t max_queue_size = 1024;
    int64_t default_timeout_ns = kNoDeadline;  // of waiting in the queue
    std::vector<WarmupRequest> warmup = {};
  };

  // Throws Error when a configured warm-up request fails.
  ModelVersion(std::string name, int64_t version, std::unique_ptr<const Model> model, Options options,
               ModelMetrics& metrics);
  ~ModelVersion();

  const std::string& name() const { return name_; }
  const std::string& version() const { return version_text_; }
  const Signature& signature() const { return model_->signature(); }
  ModelMetrics& metrics() const { return metrics_; }
  OwnerId owner() const { return owner_; }
  PlanCounts plan_counts() const { return model_->plan_counts(); }

  // `sink` must live until its finish() was called; that may be before this returns, on this
  // thread, when the model has shown that it takes only microseconds.
  void submit(InferRequest request, InferSink& sink);

 private:
  class InferTask;
  // How far the workers are. The first one prepares what they share, then the others run.
  struct WarmupState {
    std::mutex mutex;
    std::condition_variable changed;
    int warm_workers = 0;      // by mutex
    std::exception_ptr error;  // by mutex
  };
  void start_worker(size_t worker);
  void warm_up(size_t worker);
  void warm_up_with(size_t worker, const WarmupRequest& request);
  RunResult run_session(size_t worker, std::span<const InferTensor* const> inputs,
                        const std::function<bool()>& is_cancelled);
  InferResult run(size_t worker, const InferRequest& request, const InferSink& sink);
  bool is_short(const InferRequest& request) const;
  void note_compute(int64_t ns);
  void count_run();

  const std::string name_;
  const std::string version_text_;
  const std::unique_ptr<const Model> model_;
  Options options_;
  ModelMetrics& metrics_;
  const OwnerId owner_;
  std::vector<std::unique_ptr<ModelSession>> sessions_;  // one per worker
  std::atomic<int64_t> typical_compute_ns_{INT64_MAX};   // moving average of the runs
  std::atomic<uint64_t> runs_{0};
  WarmupState warmup_;
  Scheduler scheduler_;  // last: its threads use the rest
};

}  // namespace tensord::server
