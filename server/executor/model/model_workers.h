#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/allocator.h"
#include "server/executor/model/model.h"
#include "server/executor/warmup/warmup.h"
#include "server/scheduler/core_budget.h"

namespace tensord::server {

// The sessions of a model version, one per worker, and how they run. Workers run side by side without a lock; each is
// used by one thread at a time. They are warmed up before the first run.
class ModelWorkers {
 public:
  struct Options {
    int workers = 1;
    int threads_per_worker = 1;   // a run may get fewer of `cores`
    CoreBudget* cores = nullptr;  // shared with other models; null: every run gets its threads
    std::vector<WarmupRequest> warmup = {};
  };

  ModelWorkers(const std::string& name, const Model& model, Options options, OwnerId owner);

  size_t size() const { return sessions_.size(); }
  const Signature& signature() const { return model_.signature(); }
  OwnerId owner() const { return owner_; }

  // Every worker runs the warm-up requests: the first one prepares what they share, the others follow side by side, on
  // as many threads as there are cores. Gives up with the calling thread's CancellationScope. Throws Error when a
  // configured request failed, and kResourceExhausted where the process does not get the threads of a worker.
  void warm_up();
  // What warm_up() met that requests may meet too, as sentences.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // After that: gives back memory that it needed. Other threads may wait for the allocator meanwhile, so not on a
  // thread that itself waits for a core.
  void end_warm_up();
  // On a thread that runs workers, before its first run.
  void start_thread() const;

  // Runs the model as `worker` with its share of the cores. `inputs` as ModelSession::run wants them. Memory is charged
  // to the model's owner. Outputs lie in their `places` where the model can put them there. Throws Error.
  RunResult run(size_t worker, std::span<const InferTensor* const> inputs, const std::function<bool()>& is_cancelled,
                std::span<const OutputPlace> places = {});
  // After a run whose answers are on their way: gives back memory that only new shapes needed.
  void record_answered();

 private:
  void warm_up_others();
  void warm_up_worker(size_t worker);
  void run_requests(size_t worker);
  void warm_up_with(size_t worker, const WarmupRequest& request);
  void compare_shapes(std::span<const InferTensor> outputs);

  const std::string& name_;
  const Model& model_;
  Options options_;
  const OwnerId owner_;
  std::vector<std::unique_ptr<ModelSession>> sessions_;
  std::vector<std::string> warnings_;  // by the first worker, while the others do not run yet
  std::atomic<uint64_t> answered_runs_{0};
};

}  // namespace tensord::server
