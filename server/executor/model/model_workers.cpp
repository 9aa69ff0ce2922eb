#include "server/executor/model/model_workers.h"

#include <algorithm>
#include <atomic>
#include <exception>

#include "core/base/cancellation.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/execution_context.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/parallel.h"
#include "core/base/thread.h"
#include "core/tensor/shape.h"

namespace tensord::server {
namespace {

// Automatic warm-up skips batches that would take longer.
constexpr int64_t kMaxWarmupNs = 2'000'000'000;

}  // namespace

ModelWorkers::ModelWorkers(const std::string& name, const Model& model, Options options, OwnerId owner)
    : name_(name), model_(model), options_(std::move(options)), owner_(owner) {
  for (int i = 0; i < options_.workers; ++i) sessions_.push_back(model.make_session_of(static_cast<size_t>(i)));
}

void ModelWorkers::warm_up() {
  if (sessions_.empty()) return;
  set_thread_budget(options_.threads_per_worker);
  if (thread_budget() < options_.threads_per_worker) {
    fail(ErrorCode::kResourceExhausted, "a worker is to have ", options_.threads_per_worker,
         " threads, but the process gets ", thread_budget(),
         "; the limit of threads of the process, its user or its cgroup is reached");
  }
  warm_up_worker(0);
  warm_up_others();
}

namespace {

// The last error of several threads. Thread-safe.
class LastError {
 public:
  void set(std::exception_ptr error) {
    const MutexLock lock(mutex_);
    error_ = std::move(error);
  }
  void rethrow() {
    const MutexLock lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

 private:
  Mutex mutex_;
  std::exception_ptr error_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace

void ModelWorkers::warm_up_others() {
  std::atomic<size_t> next{1};
  LastError error;
  const auto warm_up_some = [&, context = ExecutionContext::captured()] {
    const ExecutionScope scope(context);
    try {
      for (size_t i = next++; i < sessions_.size(); i = next++) warm_up_worker(i);
    } catch (...) {
      error.set(std::current_exception());
    }
  };
  std::vector<Thread> helpers;
  const size_t wanted = std::min(sessions_.size() - 1, static_cast<size_t>(available_cores()));
  try {
    while (helpers.size() + 1 < wanted) helpers.emplace_back("warm-up", warm_up_some);
  } catch (const Error&) {
    // No thread could be created, so the existing ones do all of it.
  }
  warm_up_some();
  for (Thread& helper : helpers) helper.join();
  error.rethrow();
}

void ModelWorkers::end_warm_up() {
  if (!options_.warmup.empty()) model_.release_unused_memory();
  options_.warmup.clear();
}

void ModelWorkers::start_thread() const { set_thread_budget(options_.threads_per_worker); }

void ModelWorkers::warm_up_worker(size_t worker) {
  const MemoryOwnerScope owner_scope(owner_);
  const PlacementScope placement(placement_of(worker));
  run_requests(worker);
}

void ModelWorkers::run_requests(size_t worker) {
  int64_t row_ns = 0;  // time per row in a batch
  for (const WarmupRequest& request : options_.warmup) {
    // For a model that runs for seconds, warm-up saves the first client comparatively little.
    if (!request.is_configured && row_ns > kMaxWarmupNs / request.batch_size) continue;
    const int64_t start_ns = Clock::system().now_ns();
    try {
      warm_up_with(worker, request);
    } catch (const Error& error) {
      check_work_cancelled();  // the load timed out or was cancelled
      if (request.is_configured) throw Error(error.code(), concat("model_warmup '", request.name, "': ", error.what()));
      // A failure on all-zero warm-up input is only a warning. UNIMPLEMENTED and FAILED_PRECONDITION would fail for any
      // input, so they fail the load.
      if (error.code() == ErrorCode::kUnimplemented || error.code() == ErrorCode::kFailedPrecondition) {
        throw Error(error.code(), concat(error.what(), ": met by the warm-up with zeros (", request.name,
                                         "). Where other data takes another way, give model_warmup requests that do"));
      }
      log(LogLevel::kWarning, "model not warmed up with zeros",
          {{"model", name_}, {"request", request.name}, {"reason", error.what()}});
      if (worker == 0) {
        warnings_.push_back(concat("zeros of the configured shapes (", request.name, ") fail: ", error.what()));
      }
      return;
    }
    row_ns = (Clock::system().now_ns() - start_ns) / request.batch_size;
  }
}

void ModelWorkers::warm_up_with(size_t worker, const WarmupRequest& request) {
  std::vector<const InferTensor*> inputs(signature().inputs.size(), nullptr);
  for (size_t i = 0; i < request.inputs.size(); ++i) inputs[request.input_indices[i]] = &request.inputs[i];
  const std::function<bool()> is_cancelled = is_work_cancelled;
  const auto run = [&](int threads) {
    set_thread_budget(threads);
    const RunResult result = sessions_[worker]->run(inputs, {.is_cancelled = is_cancelled});
    if (worker == 0 && warnings_.empty()) compare_shapes(result.outputs);
  };
  for (uint32_t i = 0; i < request.count; ++i) run(options_.threads_per_worker);
  // Thread counts that a run may get when cores are shared.
  if (!options_.cores || signature().keeps_state) return;
  for (int threads = options_.threads_per_worker / 2; threads > 0; threads /= 2) run(threads);
}

// Clients allocate output memory by the configured shapes.
void ModelWorkers::compare_shapes(std::span<const InferTensor> outputs) {
  for (const InferTensor& output : outputs) {
    const auto& specs = signature().outputs;
    const auto spec = std::find_if(specs.begin(), specs.end(),
                                   [&](const TensorSpec& candidate) { return candidate.answers_to(output.name); });
    if (spec == specs.end() || !spec->shape) continue;
    bool is_same = spec->shape->size() == output.shape.size();
    for (size_t i = 0; is_same && i < output.shape.size(); ++i) {
      is_same = (*spec->shape)[i] < 0 || (*spec->shape)[i] == output.shape[i];
    }
    if (is_same) continue;
    warnings_.push_back(concat("output '", output.name, "' has shape ", to_string(output.shape),
                               ", but config.pbtxt says ", to_string(*spec->shape),
                               signature().max_batch_size > 0 ? ", the batch among them" : ""));
  }
}

RunResult ModelWorkers::run(size_t worker, std::span<const InferTensor* const> inputs,
                            const std::function<bool()>& is_cancelled, std::span<const OutputPlace> places,
                            std::span<const std::string> resident) {
  const MemoryOwnerScope owner_scope(owner_);
  const RunOptions options{
      .is_cancelled = is_cancelled, .places = places, .resident = resident, .plans_in_background = true};
  if (!options_.cores) {
    set_thread_budget(options_.threads_per_worker);
    place_threads(placement_of(worker));
    return sessions_[worker]->run(inputs, options);
  }
  const CoreBudget::Share share = options_.cores->take(options_.threads_per_worker);
  set_thread_budget(share.threads());
  place_threads(placement_of(worker));
  return sessions_[worker]->run(inputs, options);
}

void ModelWorkers::record_answered() {
  // New shapes mostly come early, so check after runs 1, 2, 4, 8 …
  const uint64_t runs = answered_runs_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (!signature().keeps_state && (runs & (runs - 1)) == 0) model_.release_unused_memory();
}

}  // namespace tensord::server
