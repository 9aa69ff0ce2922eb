#include <algorithm>
#include <deque>

#include "core/base/delay_point.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "server/executor/requests/status.h"
#include "server/executor/strategies/batch_rules.h"
#include "server/executor/strategies/generation_step.h"
#include "server/executor/strategies/kept_state.h"
#include "server/executor/strategies/sequence_rows.h"
#include "server/executor/strategies/sequence_strategy.h"

namespace tensord::server {
namespace {

constexpr const char* kMaxTokens = "max_tokens";  // a request parameter
constexpr uint64_t kHeldAtOnce = 4096;            // minimum step of a quota hold, so that a growing row has few holds

// A request and its row.
struct Generation {
  Generation(InferRequest&& taken, InferSink& waiting, ModelMetrics& metrics)
      : request(std::move(taken)), sink(waiting), pending(metrics) {}
  bool is_late(int64_t now_ns) const { return now_ns >= request.deadline_ns; }
  bool is_dead(int64_t now_ns) const { return sink.is_cancelled() || is_late(now_ns); }

  InferRequest request;  // without its inputs, which moved to the row
  InferSink& sink;
  PendingRequest pending;  // until it runs
  GenerationRow row;
  int64_t waits_until_ns = kNoDeadline;
  RequestTimes times;
  uint64_t copied_bytes = 0;
  std::vector<Tensor> collected;  // the fed-back tensors of all steps, if there is a single response
  // Charged to the client's quota: the state that a row keeps between steps, which requests can make arbitrarily large.
  uint64_t held_bytes = 0;
  std::vector<std::shared_ptr<const void>> holds;
};
using GenerationPtr = std::unique_ptr<Generation>;

// Each worker has a running batch. Between two steps, finished and cancelled requests leave it and waiting ones join. A
// joining request makes its first step separately, because its inputs differ from those of later steps.
class GenerationStrategy final : public ExecutionStrategy {
 public:
  explicit GenerationStrategy(const StrategyContext& context);
  ~GenerationStrategy() override { stop(); }
  void submit(InferRequest&& request, InferSink& sink) override;
  void record_cancelled() override;
  void stop() override;

 private:
  using Running = std::vector<GenerationPtr>;
  struct Rejected {
    GenerationPtr generation;
    absl::Status status;
  };

  GenerationPtr make_generation(InferRequest& request, InferSink& sink) const;
  int64_t max_steps(const InferRequest& request) const;
  void work(size_t worker);
  bool take(Running& running);
  void reject_expired(std::deque<GenerationPtr>& waiting, std::vector<Rejected>& rejected) const;
  void start_threads();
  void step_all(size_t worker, Running& running);
  void step(size_t worker, std::span<Generation* const> group);
  void run_model(size_t worker, std::span<Generation* const> group);
  void respond(Generation& generation);
  void finish(Generation& generation, absl::Status status);
  void collect(Generation& generation) const;
  void hold_kept(Generation& generation) const;
  void add_collected(Generation& generation, std::vector<InferTensor>& outputs) const;
  absl::Status dead_status(const Generation& generation) const;
  static int64_t now_ns() { return Clock::system().now_ns(); }

  const StrategyContext context_;
  const GenerationStep step_;
  size_t capacity_ = 1;  // maximum rows of a running batch
  std::unique_ptr<RateLimiter::Client> rate_limiter_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<GenerationPtr> waiting_ TENSORD_GUARDED_BY(mutex_);
  uint64_t next_id_ TENSORD_GUARDED_BY(mutex_) = 1;
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;
  std::vector<Thread> threads_;  // guarded by mutex_ until stopped; declared last: they use the other members
};

GenerationStrategy::GenerationStrategy(const StrategyContext& context)
    : context_(context),
      step_(context.model, context.config, context.signature),
      rate_limiter_(make_rate_limiter_client(context)) {
  capacity_ = step_.model().max_rows();
  const int32_t candidates = context.config.sequence_batching->oldest_max_candidate_sequences;
  if (candidates > 0) capacity_ = std::min(capacity_, static_cast<size_t>(candidates));
}

// Started by the first request, so that an unused model costs no thread. REQUIRES: mutex_ is held.
void GenerationStrategy::start_threads() {
  while (threads_.size() < context_.workers->size()) {
    threads_.emplace_back("generation", [this, i = threads_.size()] { work(i); });
  }
}

int64_t GenerationStrategy::max_steps(const InferRequest& request) const {
  const int64_t max = step_.options().max_steps;
  const auto found = request.parameters.find(kMaxTokens);
  if (found == request.parameters.end()) return max;
  int64_t asked = 0;
  if (const auto* number = std::get_if<int64_t>(&found->second)) asked = *number;
  if (const auto* number = std::get_if<uint64_t>(&found->second)) {
    asked = static_cast<int64_t>(std::min<uint64_t>(*number, INT64_MAX));
  }
  check(asked >= 1 && asked <= max, "parameter '", kMaxTokens, "' must be a whole number from 1 to ", max,
        " for model '", context_.model, "'");
  return asked;
}

GenerationPtr GenerationStrategy::make_generation(InferRequest& request, InferSink& sink) const {
  check(request.batch_size == 1, "inference request to model '", context_.model,
        "' must specify batch-size 1 due to requirements of sequence batcher");
  step_.model().check_correlation_id(request.sequence);
  const int64_t steps = max_steps(request);
  auto out = std::make_unique<Generation>(std::move(request), sink, context_.metrics);
  InferRequest& taken = out->request;
  out->row.id = taken.sequence;
  out->row.inputs = std::move(taken.inputs);
  out->row.input_indices = std::move(taken.input_indices);
  out->row.max_steps = steps;
  out->times.arrived_ns = taken.arrived_ns;
  out->times.queue_start_ns = now_ns();
  out->waits_until_ns = taken.deadline_ns;
  return out;
}

void GenerationStrategy::submit(InferRequest&& request, InferSink& sink) {
  const int64_t arrived_ns = request.arrived_ns;
  absl::Status status;
  try {
    GenerationPtr generation = make_generation(request, sink);
    const MutexLock lock(mutex_);
    if (is_stopped_) {
      status = absl::UnavailableError("the model is being unloaded");
    } else if (waiting_.size() >= context_.default_queue_size) {
      status = absl::ResourceExhaustedError("Exceeds maximum queue size");
    } else {
      start_threads();
      if (generation->row.id.is_none()) generation->row.id.number = next_id_++ & INT32_MAX;
      waiting_.push_back(std::move(generation));
    }
  } catch (...) {
    status = current_exception_status();
  }
  if (status.ok()) {
    changed_.notify_one();
    return;
  }
  InferResult result;
  result.status = std::move(status);
  result.times.arrived_ns = arrived_ns;
  sink.respond(std::move(result), /*is_final=*/true);
}

absl::Status GenerationStrategy::dead_status(const Generation& generation) const {
  if (generation.sink.is_cancelled()) return absl::CancelledError("the request was cancelled");
  return absl::DeadlineExceededError("Request timeout expired");
}

// Removes requests that will not run from the queue.
void GenerationStrategy::reject_expired(std::deque<GenerationPtr>& waiting, std::vector<Rejected>& rejected) const {
  const int64_t now = now_ns();
  std::erase_if(waiting, [&](GenerationPtr& one) {
    if (!one->sink.is_cancelled() && now < one->waits_until_ns) return false;
    absl::Status status = dead_status(*one);
    rejected.push_back({std::move(one), std::move(status)});
    return true;
  });
}

void GenerationStrategy::record_cancelled() {
  std::vector<Rejected> rejected;
  {
    const MutexLock lock(mutex_);
    reject_expired(waiting_, rejected);
  }
  for (Rejected& one : rejected) finish(*one.generation, std::move(one.status));
}

void GenerationStrategy::stop() {
  std::deque<GenerationPtr> waiting;
  {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
    waiting.swap(waiting_);
  }
  changed_.notify_all();
  if (rate_limiter_) rate_limiter_->stop();
  for (const GenerationPtr& one : waiting) finish(*one, absl::UnavailableError("the model is being unloaded"));
  for (Thread& thread : threads_) thread.join();
  threads_.clear();
}

// Fills the running batch from the queue; waits while both are empty. Returns false when there is nothing left to do.
bool GenerationStrategy::take(Running& running) {
  std::vector<Rejected> rejected;
  {
    MutexLock lock(mutex_);
    while (running.empty() && waiting_.empty() && !is_stopped_) changed_.wait(lock);
    reject_expired(waiting_, rejected);
    while (!waiting_.empty() && running.size() < capacity_) {
      waiting_.front()->pending.end();
      running.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    if (!waiting_.empty()) changed_.notify_one();
    if (running.empty() && is_stopped_) return false;
  }
  for (Rejected& one : rejected) finish(*one.generation, std::move(one.status));
  return true;
}

void GenerationStrategy::work(size_t worker) {
  context_.workers->start_thread();
  const MemoryOwnerScope owner_scope(context_.workers->owner());
  Running running;
  while (take(running)) {
    TENSORD_DELAY("generation.step");
    if (!running.empty()) run_logged("generation", [&] { step_all(worker, running); });
  }
}

// Runs one step for every row, but first steps only for joining rows with the same signature, so that nobody waits
// long.
void GenerationStrategy::step_all(size_t worker, Running& running) {
  std::optional<RateLimiter::Permit> permit;
  if (rate_limiter_) permit = rate_limiter_->acquire({}, rate_limiter_->device_of(worker));
  std::vector<std::pair<std::string, std::vector<Generation*>>> groups;
  bool has_first = false;
  for (const GenerationPtr& one : running) {
    if (one->is_dead(now_ns())) {
      finish(*one, dead_status(*one));
      one->row.is_done = true;
      continue;
    }
    if (one->row.steps == 0 && one->row.state.empty()) one->row.state = step_.model().initial_state();
    const std::string key = step_.key(one->row);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& entry) { return entry.first == key; });
    if (group == groups.end()) {
      if (one->row.steps == 0 && std::exchange(has_first, true)) continue;
      group = groups.insert(groups.end(), {key, {}});
    }
    group->second.push_back(one.get());
  }
  for (const auto& [key, group] : groups) step(worker, group);
  std::erase_if(running, [](const GenerationPtr& one) { return one->row.is_done; });
  context_.workers->record_answered();
}

void GenerationStrategy::run_model(size_t worker, std::span<Generation* const> group) {
  std::vector<GenerationRow*> rows;
  for (Generation* one : group) rows.push_back(&one->row);
  RequestTimes times;
  times.compute_start_ns = times.compute_input_end_ns = now_ns();
  const auto is_cancelled = [&] {
    const int64_t now = now_ns();
    return std::all_of(group.begin(), group.end(), [&](const Generation* one) { return one->is_dead(now); });
  };
  group[0]->copied_bytes += step_.run(rows, [&](std::span<const InferTensor* const> inputs) {
    times.compute_input_end_ns = now_ns();
    RunResult result = context_.workers->run(worker, inputs, is_cancelled);
    times.compute_output_start_ns = now_ns();
    return result;
  });
  times.compute_end_ns = now_ns();
  context_.metrics.count_execution(static_cast<int64_t>(group.size()), times);
  for (Generation* one : group) {
    if (one->times.compute_start_ns == 0) {
      one->times.compute_start_ns = times.compute_start_ns;
      one->times.compute_input_end_ns = times.compute_input_end_ns;
    }
    one->times.compute_output_start_ns = times.compute_output_start_ns;
    one->times.compute_end_ns = times.compute_end_ns;
  }
}

void GenerationStrategy::step(size_t worker, std::span<Generation* const> group) {
  RequestTimes times;
  times.compute_start_ns = now_ns();
  try {
    run_model(worker, group);
  } catch (...) {
    const absl::Status status = current_exception_status();
    times.compute_end_ns = now_ns();
    context_.metrics.count_execution(static_cast<int64_t>(group.size()), times, /*is_success=*/false);
    // One bad request must not fail the others. A step can be repeated only if nothing was changed.
    if (group.size() > 1 && !context_.signature.writes_inputs) {
      for (Generation* const& one : group) step(worker, {&one, 1});
      return;
    }
    for (Generation* one : group) {
      one->row.is_done = true;
      finish(*one, one->is_dead(now_ns()) ? dead_status(*one) : status);
    }
    return;
  }
  for (Generation* one : group) respond(*one);
}

void GenerationStrategy::collect(Generation& generation) const {
  for (const InferTensor& output : generation.row.outputs) {
    if (output.name != step_.options().feedback_output) continue;
    std::vector<Tensor>& collected = generation.collected;
    if (!collected.empty() && collected[0].dtype() != output.tensor.dtype()) {
      fail(ErrorCode::kFailedPrecondition, "output '", output.name, "' of model '", context_.model, "' is ",
           tensord::name_of(output.tensor.dtype()), " and was ", tensord::name_of(collected[0].dtype()),
           " in the steps before: one response has one type");
    }
    collected.push_back(output.tensor.clone());
  }
}

// The single response contains the fed-back tensors of all steps, concatenated, and the other outputs of the last step.
void GenerationStrategy::add_collected(Generation& generation, std::vector<InferTensor>& outputs) const {
  for (InferTensor& output : outputs) {
    if (output.name != step_.options().feedback_output) continue;
    int64_t count = 0;
    for (const Tensor& part : generation.collected) count += part.numel();
    output.tensor = Tensor::empty(step_.model().has_batch_dimension() ? Dims{1, count} : Dims{count},
                                  generation.collected[0].dtype());
    output.shape = output.tensor.sizes();
    char* to = static_cast<char*>(output.tensor.raw_data());
    for (const Tensor& part : generation.collected) {
      to = std::copy_n(static_cast<const char*>(part.raw_data()), part.size_bytes(), to);
    }
  }
}

// Holds quota for what the row keeps. Holds grow only, until the request is done.
void GenerationStrategy::hold_kept(Generation& generation) const {
  uint64_t bytes = generation.row.is_done ? 0 : open_bytes(step_.model(), generation.row.state);
  for (const Tensor& part : generation.collected) bytes += part.size_bytes();
  if (bytes <= generation.held_bytes) return;
  const uint64_t more = std::max(bytes - generation.held_bytes, kHeldAtOnce);
  generation.holds.push_back(generation.sink.hold_memory(more));
  generation.held_bytes += more;
}

// Frees the row's state before the client has its answer.
void let_go(Generation& generation) {
  generation.row.state.clear();
  generation.collected.clear();
  generation.holds.clear();
}

// Sends responses that are due after a step.
void GenerationStrategy::respond(Generation& generation) {
  GenerationRow& row = generation.row;
  const bool is_streamed = context_.config.is_decoupled;
  InferResult result;
  try {
    if (!is_streamed) collect(generation);
    hold_kept(generation);
    if (!is_streamed && !row.is_done) return;
    if (!is_streamed) add_collected(generation, row.outputs);
    result.outputs = select_outputs(std::move(row.outputs), step_.model().request_signature(), context_.model,
                                    generation.request.requested_outputs);
  } catch (...) {
    row.is_done = true;
    finish(generation, current_exception_status());
    return;
  }
  result.times = generation.times;
  result.copied_bytes = std::exchange(generation.copied_bytes, 0);
  if (row.is_done) let_go(generation);
  TENSORD_DELAY("generation.respond");
  generation.sink.respond(std::move(result), row.is_done);
}

void GenerationStrategy::finish(Generation& generation, absl::Status status) {
  let_go(generation);
  InferResult result;
  result.status = std::move(status);
  result.times = generation.times;
  generation.sink.respond(std::move(result), /*is_final=*/true);
}

}  // namespace

std::unique_ptr<ExecutionStrategy> make_generation_strategy(const StrategyContext& context) {
  const std::string unused = unused_settings(*context.config.sequence_batching);
  if (!unused.empty()) {
    log(LogLevel::kWarning, "settings of sequence_batching are not used: the model generates step by step",
        {{"model", context.model}, {"settings", unused}});
  }
  return std::make_unique<GenerationStrategy>(context);
}

}  // namespace tensord::server
