#pragma once

#include <absl/status/status.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/mutex.h"

#include "server/executor/model/model_version.h"
#include "server/executor/requests/request.h"
#include "server/executor/strategies/ensemble_plan.h"

namespace tensord::server {

// One request on its way through the steps of an ensemble. A step starts when its inputs are available; tensors pass
// between models without a copy. If a step fails or the request is cancelled, the other steps are stopped, and the
// answer is sent when they have ended.
// A decoupled step starts when every step that does not depend on it has ended. Each of its answers runs through the
// remaining steps as a branch, concurrently with the others; the ensemble's answers keep their order. Thread-safe.
class EnsembleRun : public std::enable_shared_from_this<EnsembleRun> {
 public:
  // Everything here must outlive the run.
  struct Context {
    const std::string& name;
    const EnsemblePlan& plan;
    const ModelDirectory& directory;
    ModelMetrics& metrics;
    std::function<void(EnsembleRun*)> on_end;  // called last, after the final answer
  };
  EnsembleRun(const Context& context, InferRequest&& request, InferSink& sink);
  ~EnsembleRun();

  void start();
  // Tells the models that run steps of this request that it was cancelled or has failed.
  void record_cancelled();

 private:
  class StepSink;
  struct Branch;
  // A step that is ready to start.
  struct Job {
    Branch* branch = nullptr;
    size_t step = 0;
    std::vector<InferTensor> inputs = {};
    std::vector<DataType> declared = {};  // by input
  };

  bool is_stopped() const { return has_failed_.load(std::memory_order_acquire) || sink_.is_cancelled(); }
  void advance();
  struct Answer {
    InferResult result;
    RequestTimes spent;
    bool is_final = false;
  };
  std::optional<Job> next_job() TENSORD_REQUIRES(mutex_);
  std::optional<Answer> next_answer() TENSORD_REQUIRES(mutex_);
  void give(Answer answer);
  bool take_job(Branch& branch, Job& job) TENSORD_REQUIRES(mutex_);
  size_t next_step(const Branch& branch) const;
  InferTensor take_tensor(Branch& branch, size_t tensor);
  void submit(Job job);
  InferRequest make_request(Job& job, const ModelVersion& model) const;
  void reshape_inputs() TENSORD_REQUIRES(mutex_);
  void on_answer(StepSink& sink, InferResult result, bool is_final);
  void put_outputs(const EnsemblePlan::Step& step, InferResult& result, Branch& branch) TENSORD_REQUIRES(mutex_);
  void add_child(Branch& branch, size_t step, InferResult& result) TENSORD_REQUIRES(mutex_);
  void fail_with(const absl::Status& status) TENSORD_REQUIRES(mutex_);
  void give_up(const Job& job, const absl::Status& status);
  void queue(Branch& branch) TENSORD_REQUIRES(mutex_);
  void finish_branch(Branch& branch) TENSORD_REQUIRES(mutex_);
  void start_children(Branch& branch) TENSORD_REQUIRES(mutex_);
  bool collect(Branch& branch) TENSORD_REQUIRES(mutex_);
  InferResult take_result(Branch& branch);
  void add_times(const RequestTimes& step) TENSORD_REQUIRES(mutex_);
  RequestTimes times() const TENSORD_REQUIRES(mutex_);

  const Context& context_;
  InferRequest request_;  // its inputs are moved to the root branch
  InferSink& sink_;
  std::vector<size_t> wanted_;   // outputs of the plan, in the order of the answer
  std::vector<bool> is_needed_;  // by step: whether these outputs depend on it
  std::atomic<bool> has_failed_{false};

  Mutex mutex_;                                              // guards the members below
  std::unique_ptr<Branch> root_ TENSORD_GUARDED_BY(mutex_);  // null once all of its answers are ready
  std::deque<Branch*> changed_ TENSORD_GUARDED_BY(mutex_);   // branches that may make progress
  std::set<StepSink*> working_ TENSORD_GUARDED_BY(mutex_);   // submitted steps that have not ended
  size_t running_ TENSORD_GUARDED_BY(mutex_) = 0;            // working_, plus steps that are being submitted
  bool is_advancing_ TENSORD_GUARDED_BY(mutex_) = false;  // a thread advances the run and checks again before it stops
  std::deque<InferResult> ready_ TENSORD_GUARDED_BY(mutex_);  // answers, in order
  bool is_over_ TENSORD_GUARDED_BY(mutex_) = false;           // the final answer was sent
  absl::Status status_ TENSORD_GUARDED_BY(mutex_);            // the first failure
  int64_t start_ns_ TENSORD_GUARDED_BY(mutex_) = 0;
  int64_t input_ns_ = 0, output_ns_ = 0;  // sums over the steps
};

}  // namespace tensord::server
