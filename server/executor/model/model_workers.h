#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/host_placement.h"
#include "core/tensor/allocator.h"
#include "server/executor/model/model.h"
#include "server/executor/warmup/warmup.h"
#include "server/scheduler/core_budget.h"

namespace tensord::server {

// The sessions of a model version, one per worker. Different workers run concurrently without a lock; one worker is
// used by one thread at a time. All are warmed up before their first run.
class ModelWorkers {
 public:
  struct Options {
    int workers = 1;
    int threads_per_worker = 1;   // a run may get fewer, see `cores`
    CoreBudget* cores = nullptr;  // shared with other models; null: every run gets all its threads
    std::vector<const HostPlacement*> placements = {};  // by worker, null: anywhere; empty: none has one
    std::vector<WarmupRequest> warmup = {};
  };

  ModelWorkers(const std::string& name, const Model& model, Options options, OwnerId owner);

  size_t size() const { return sessions_.size(); }
  const Signature& signature() const { return model_.signature(); }
  OwnerId owner() const { return owner_; }
  // Whether runs move the thread that calls run() to a worker's cores.
  bool are_placed() const { return !options_.placements.empty(); }

  // Runs the warm-up requests on every worker. The first worker prepares what all share; the others follow
  // concurrently, on as many threads as there are cores. Stops when the calling thread's CancellationScope is
  // cancelled. Throws Error if a configured request failed, and kResourceExhausted if a worker's threads cannot be
  // started.
  void warm_up();
  // Problems found by warm_up() that requests may have too, as sentences.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Releases memory that only the warm-up needed. Other threads may wait for the allocator meanwhile, so do not call it
  // on a thread that holds a core.
  void end_warm_up();
  // Must be called on a thread before it runs a worker for the first time.
  void start_thread() const;

  // Runs the model on `worker` with its share of the cores. `inputs` as for ModelSession::run. Memory is charged to the
  // model's owner. Outputs are written to `places` where the model supports it, and those of `resident` stay where they
  // are made. Throws Error.
  RunResult run(size_t worker, std::span<const InferTensor* const> inputs, const std::function<bool()>& is_cancelled,
                std::span<const OutputPlace> places = {}, std::span<const std::string> resident = {});
  // Call after the answers of a run were sent: releases memory that only new shapes needed.
  void record_answered();

 private:
  const HostPlacement* placement_of(size_t worker) const {
    return options_.placements.empty() ? nullptr : options_.placements[worker];
  }
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
  std::vector<std::string> warnings_;  // written by the first worker, before the others run
  std::atomic<uint64_t> answered_runs_{0};
};

}  // namespace tensord::server
