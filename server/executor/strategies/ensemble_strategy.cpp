#include <map>

#include "core/base/error.h"
#include "core/base/mutex.h"
#include "server/executor/strategies/ensemble_run.h"

namespace tensord::server {
namespace {

// Has no queue of its own: the steps' models have theirs.
class EnsembleStrategy final : public ExecutionStrategy {
 public:
  explicit EnsembleStrategy(const StrategyContext& context)
      : plan_(plan_ensemble(context.model, context.config, *context.directory)),
        run_context_{.name = context.model,
                     .plan = plan_,
                     .directory = *context.directory,
                     .metrics = context.metrics,
                     .on_end = [this](EnsembleRun* run) { end(run); }} {}

  void submit(InferRequest&& request, InferSink& sink) override {
    InferResult refused;
    refused.times.arrived_ns = request.arrived_ns;
    std::shared_ptr<EnsembleRun> run;
    {
      const MutexLock lock(mutex_);
      if (!is_stopped_) {
        run = std::make_shared<EnsembleRun>(run_context_, std::move(request), sink);
        runs_[run.get()] = run;
      }
    }
    if (run) {
      run->start();
    } else {
      refused.status = absl::UnavailableError("the model is being unloaded");
      sink.respond(std::move(refused), /*is_final=*/true);
    }
  }

  // The caller does not say which request was cancelled.
  void record_cancelled() override {
    std::vector<std::shared_ptr<EnsembleRun>> runs;
    {
      const MutexLock lock(mutex_);
      for (const auto& [key, run] : runs_) runs.push_back(run);
    }
    for (const auto& run : runs) run->record_cancelled();
  }

  void stop() override {
    MutexLock lock(mutex_);
    is_stopped_ = true;
    changed_.wait(lock, [this]() TENSORD_REQUIRES(mutex_) { return runs_.empty(); });
  }

 private:
  void end(EnsembleRun* run) {
    const MutexLock lock(mutex_);
    runs_.erase(run);
    changed_.notify_all();
  }

  const EnsemblePlan plan_;
  const EnsembleRun::Context run_context_;
  Mutex mutex_;
  CondVar changed_;
  std::map<EnsembleRun*, std::shared_ptr<EnsembleRun>> runs_ TENSORD_GUARDED_BY(mutex_);
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::unique_ptr<ExecutionStrategy> make_ensemble_strategy(const StrategyContext& context) {
  check_internal(context.directory != nullptr, "an ensemble without a directory of models");
  return std::make_unique<EnsembleStrategy>(context);
}

}  // namespace tensord::server
