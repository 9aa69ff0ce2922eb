#include "server/executor/strategies/sequence_strategy.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "core/base/delay_point.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "server/executor/model/sequence_model.h"
#include "server/executor/requests/status.h"
#include "server/executor/strategies/batch_rules.h"
#include "server/executor/strategies/kept_state.h"
#include "server/executor/strategies/sequence_item.h"
#include "server/executor/strategies/sequence_rows.h"
#include "server/scheduler/reorder_buffer.h"
#include "server/scheduler/sequence_policy.h"

namespace tensord::server {
namespace {

using Row = SequenceBatch::Row;

SequenceItem& item_of(const Row& row) { return static_cast<SequenceItem&>(*row.request); }
SequenceState& state_of(const Row& row) { return kept_of(*row.sequence).state; }

class SequenceStrategy final : public ExecutionStrategy {
 public:
  explicit SequenceStrategy(const StrategyContext& context);
  ~SequenceStrategy() override { stop(); }
  void submit(InferRequest&& request, InferSink& sink) override;
  void record_cancelled() override;
  void stop() override;

 private:
  using Rejections = SequencePolicy::Rejections;

  std::unique_ptr<SequencePolicy> make_policy() const;
  void check_request(const InferRequest& request) const;
  std::unique_ptr<SequenceItem> make_item(InferRequest&& request, InferSink& sink) const;
  void work(size_t instance);
  bool wait_for_batch(size_t instance, SequenceBatch& batch, Rejections& rejected);
  void keep_time();
  void start_threads();
  void watch_time() TENSORD_REQUIRES(mutex_);

  void run(size_t instance, SequenceBatch& batch);
  void run_together(size_t instance, const std::vector<Row*>& rows, const std::vector<bool>& is_ready);
  void run_model(size_t instance, const std::vector<Row*>& rows, const std::vector<bool>& is_ready,
                 std::vector<RowResult>& results, RequestTimes& times, uint64_t& copied_bytes);
  std::vector<InferTensor> gather(const std::vector<Row*>& rows, const std::vector<bool>& is_ready,
                                  std::vector<size_t>& indices, uint64_t& copied_bytes) const;
  void keep_states(const std::vector<Row*>& rows, const std::vector<bool>& is_ready, const std::vector<Tensor>& states,
                   std::vector<RowResult>& results) const;
  void release_unused_memory(std::vector<std::weak_ptr<Sequence>>& last, const SequenceBatch& batch) const;
  void reject(Rejections& rejected);
  void answer(std::unique_ptr<SequenceRequest> request, InferResult result);
  std::string states_key(const Row& row) const;
  int64_t now_ns() const { return Clock::system().now_ns(); }

  const StrategyContext context_;
  const SequenceBatchingConfig& config_;
  const SequenceModel model_;
  const size_t instances_;
  const bool keeps_rows_;  // whether empty slots stay: for models with a READY control or state by row
  std::unique_ptr<RateLimiter::Client> rate_limiter_;
  ReorderBuffer order_;
  Mutex mutex_;
  CondVar changed_;
  std::unique_ptr<SequencePolicy> policy_ TENSORD_GUARDED_BY(mutex_);
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;
  CondVar timer_;
  Thread timekeeper_ TENSORD_GUARDED_BY(mutex_);  // started with the first request that has a deadline
  std::vector<Thread> threads_;                   // guarded by mutex_ until stopped; declared last
};

// A module with internal state has one state for all sequences, whichever worker runs it.
size_t instance_count(const StrategyContext& context) {
  if (!context.signature.keeps_state) return context.workers->size();
  if (context.config.workers > 1) {
    log(LogLevel::kWarning, "one instance is used: the model keeps state in itself", {{"model", context.model}});
  }
  return 1;
}

SequenceStrategy::SequenceStrategy(const StrategyContext& context)
    : context_(context),
      config_(*context.config.sequence_batching),
      model_(context.model, context.config, context.signature),
      instances_(instance_count(context)),
      keeps_rows_(model_.has_ready_control() || context.signature.keeps_state),
      rate_limiter_(make_rate_limiter_client(context)),
      policy_(make_policy()) {}

// Started by the first request, so that an unused model costs no thread.
void SequenceStrategy::start_threads() {
  const MutexLock lock(mutex_);
  while (!is_stopped_ && threads_.size() < instances_) {
    threads_.emplace_back("sequence", [this, i = threads_.size()] { work(i); });
  }
}

int64_t nanoseconds(uint64_t microseconds) {
  constexpr uint64_t kMax = static_cast<uint64_t>(kNoDeadline) / 1000;
  return microseconds > kMax ? kNoDeadline : static_cast<int64_t>(microseconds) * 1000;
}

std::unique_ptr<SequencePolicy> SequenceStrategy::make_policy() const {
  SequencePolicy::Options options{.model = context_.model,
                                  .instances = instances_,
                                  .rows = model_.max_rows(),
                                  .places = model_.max_rows(),
                                  .idle_ns = nanoseconds(config_.max_sequence_idle_us),
                                  .max_waiting = context_.default_queue_size};
  if (config_.strategy == SequenceBatchingConfig::Strategy::kDirect) {
    options.max_delay_ns = nanoseconds(config_.direct_max_queue_delay_us);
    const double utilization = config_.direct_minimum_slot_utilization;
    return std::make_unique<DirectSequencePolicy>(
        options, DirectSequencePolicy::DirectOptions{.minimum_utilization = utilization, .keeps_rows = keeps_rows_});
  }
  options.max_delay_ns = nanoseconds(config_.oldest_max_queue_delay_us);
  const int32_t candidates = config_.oldest_max_candidate_sequences;
  if (candidates > 0) options.places = static_cast<size_t>(candidates);
  return std::make_unique<OldestSequencePolicy>(
      options, OldestSequencePolicy::OldestOptions{.preferred_sizes = config_.oldest_preferred_batch_sizes,
                                                   .preserves_ordering = config_.oldest_preserves_ordering});
}

void SequenceStrategy::check_request(const InferRequest& request) const {
  check(!request.sequence.is_none(), "inference request to model '", context_.model,
        "' must specify a non-zero or non-empty correlation ID");
  check(request.batch_size == 1, "inference request to model '", context_.model,
        "' must specify batch-size 1 due to requirements of sequence batcher");
  model_.check_correlation_id(request.sequence);
}

std::unique_ptr<SequenceItem> SequenceStrategy::make_item(InferRequest&& request, InferSink& sink) const {
  auto item = std::make_unique<SequenceItem>(std::move(request), sink, context_.metrics);
  const InferRequest& taken = item->request;
  item->key = {.number = taken.sequence.number, .text = taken.sequence.text};
  item->is_start = taken.is_sequence_start;
  item->is_end = taken.is_sequence_end;
  for (size_t i = 0; i < model_.request_signature().inputs.size(); ++i) {
    if (const InferTensor* input = item->input(i)) {
      append_shape_key(*input, item->shape);
    } else {
      item->shape += ';';
    }
  }
  item->deadline_ns = taken.deadline_ns;
  if (taken.queue_timeout_us > 0) {
    int64_t until_ns = 0;
    const bool is_never = __builtin_add_overflow(now_ns(), nanoseconds(taken.queue_timeout_us), &until_ns);
    if (!is_never) item->place_until_ns = until_ns;
  }
  return item;
}

void SequenceStrategy::submit(InferRequest&& request, InferSink& sink) {
  try {
    check_request(request);
    start_threads();
  } catch (...) {
    InferResult result;
    result.status = current_exception_status();
    result.times.arrived_ns = request.arrived_ns;
    sink.respond(std::move(result), /*is_final=*/true);
    return;
  }
  std::unique_ptr<SequenceItem> item = make_item(std::move(request), sink);
  TENSORD_DELAY("sequence.submit");
  Rejections rejected;
  bool wakes = false;
  {
    const MutexLock lock(mutex_);
    if (is_stopped_) {
      rejected.push_back({std::move(item), ErrorCode::kUnavailable, "the model is being unloaded"});
    } else {
      wakes = item->is_start;  // it may have closed another sequence, whose slot is free now
      wakes = policy_->add(std::move(item), now_ns(), rejected) != SequencePolicy::kNoInstance || wakes;
      watch_time();
    }
  }
  if (wakes) changed_.notify_all();
  reject(rejected);
}

void SequenceStrategy::record_cancelled() {
  Rejections rejected;
  {
    const MutexLock lock(mutex_);
    if (policy_->waiting() == 0) return;
    policy_->reject_expired(now_ns(), rejected);
  }
  changed_.notify_all();
  reject(rejected);
}

void SequenceStrategy::stop() {
  Rejections rejected;
  Thread timekeeper;
  {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
    for (SequenceRequestPtr& request : policy_->drain()) {
      rejected.push_back({std::move(request), ErrorCode::kUnavailable, "the model is being unloaded"});
    }
    timekeeper = std::move(timekeeper_);
  }
  changed_.notify_all();
  timer_.notify_all();
  if (rate_limiter_) rate_limiter_->stop();
  reject(rejected);
  for (Thread& thread : threads_) thread.join();
  threads_.clear();
  if (timekeeper.joinable()) timekeeper.join();
  // Releases what is held for clients before the quota is destroyed.
  const MutexLock lock(mutex_);
  policy_ = make_policy();
}

void wait_until(CondVar& changed, MutexLock& lock, int64_t until_ns) {
  if (until_ns == kNoDeadline) {
    changed.wait(lock);
  } else {
    changed.wait_for(lock, std::chrono::nanoseconds(until_ns - Clock::system().now_ns()));
  }
}

void SequenceStrategy::watch_time() {
  if (policy_->next_expiry_ns() == kNoDeadline) return;
  if (timekeeper_.joinable()) {
    timer_.notify_one();
  } else {
    Thread made;
    run_logged("timekeeper",
               [&] { made = Thread("timekeeper", [this] { keep_time(); }); });  // the next request tries again
    timekeeper_ = std::move(made);
  }
}

// Rejects requests that waited too long, even while all workers are busy.
void SequenceStrategy::keep_time() {
  MutexLock lock(mutex_);
  while (!is_stopped_) {
    if (now_ns() < policy_->next_expiry_ns()) {
      wait_until(timer_, lock, policy_->next_expiry_ns());
      continue;
    }
    Rejections rejected;
    policy_->reject_expired(now_ns(), rejected);
    lock.unlock();
    if (!rejected.empty()) changed_.notify_all();
    reject(rejected);
    lock.lock();
  }
}

bool SequenceStrategy::wait_for_batch(size_t instance, SequenceBatch& batch, Rejections& rejected) {
  MutexLock lock(mutex_);
  while (!is_stopped_) {
    batch = policy_->next(instance, now_ns(), rejected);
    if (!batch.rows.empty() || !rejected.empty()) return true;
    wait_until(changed_, lock, batch.wake_ns);
  }
  return false;
}

void SequenceStrategy::work(size_t instance) {
  context_.workers->start_thread();
  const MemoryOwnerScope owner_scope(context_.workers->owner());
  std::vector<std::weak_ptr<Sequence>> last;
  SequenceBatch batch;
  Rejections rejected;
  while (wait_for_batch(instance, batch, rejected)) {
    reject(rejected);
    if (batch.rows.empty()) continue;
    TENSORD_DELAY("sequence.run");
    run_logged("sequence", [&] {
      release_unused_memory(last, batch);
      run(instance, batch);
    });
    const MutexLock lock(mutex_);
    if (!model_.states().empty()) end_lost(batch, *policy_, rejected);
    policy_->done(batch, now_ns());
    batch = {};
  }
}

// Copies the states of sequences that left the batch, so that the previous batch's memory can be freed.
void SequenceStrategy::release_unused_memory(std::vector<std::weak_ptr<Sequence>>& last,
                                             const SequenceBatch& batch) const {
  if (model_.states().empty()) return;
  for (const std::weak_ptr<Sequence>& weak : last) {
    const SequencePtr sequence = weak.lock();
    if (!sequence || !sequence->data) continue;
    const bool stays = std::any_of(batch.rows.begin(), batch.rows.end(),
                                   [&](const Row& row) { return row.sequence == sequence && row.request; });
    if (stays) continue;
    for (Tensor& state : kept_of(*sequence).state) {
      if (state.storage()->is_writable() && state.size_bytes() < state.storage()->size_bytes()) state = state.clone();
    }
  }
  last.clear();
  for (const Row& row : batch.rows) {
    if (row.request) last.push_back(row.sequence);
  }
}

std::string SequenceStrategy::states_key(const Row& row) const {
  std::string key;
  for (const Tensor& state : state_of(row)) key += to_string(state.sizes());
  return key;
}

// Rows whose states differ in size run one after another.
void SequenceStrategy::run(size_t instance, SequenceBatch& batch) {
  std::optional<RateLimiter::Permit> permit;
  if (rate_limiter_) permit = rate_limiter_->acquire({}, rate_limiter_->device_of(instance));
  std::map<std::string, std::vector<bool>> groups;
  std::vector<Row*> rows;
  for (size_t i = 0; i < batch.rows.size(); ++i) {
    Row& row = batch.rows[i];
    rows.push_back(&row);
    if (!row.request) continue;
    if (!row.sequence->data) row.sequence->data = std::make_shared<KeptState>(KeptState{model_.initial_state(), {}});
    std::vector<bool>& is_ready = groups[states_key(row)];
    is_ready.resize(batch.rows.size());
    is_ready[i] = true;
  }
  for (const auto& [key, is_ready] : groups) run_together(instance, rows, is_ready);
  context_.workers->record_answered();
}

void SequenceStrategy::run_together(size_t instance, const std::vector<Row*>& all, const std::vector<bool>& ready) {
  std::vector<Row*> rows = all;
  std::vector<bool> is_ready = ready;
  const auto count = static_cast<size_t>(std::count(is_ready.begin(), is_ready.end(), true));
  if (count < rows.size() && !keeps_rows_) {
    std::erase_if(rows, [&](const Row* row) { return !is_ready[static_cast<size_t>(row - all[0])]; });
    is_ready.assign(rows.size(), true);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (is_ready[i]) item_of(*rows[i]).pending.end();
  }
  RequestTimes times;
  times.compute_start_ns = now_ns();
  std::vector<RowResult> results(rows.size());
  uint64_t copied_bytes = 0;
  bool has_failed = false;
  try {
    run_model(instance, rows, is_ready, results, times, copied_bytes);
  } catch (...) {
    has_failed = true;
    const absl::Status status = current_exception_status();
    for (RowResult& result : results) result.status = status;
  }
  times.compute_end_ns = now_ns();
  context_.metrics.count_execution(static_cast<int64_t>(count), times, !has_failed);
  // One bad request must not fail the others. A run can be repeated only if nothing was changed.
  if (has_failed && count > 1 && !context_.signature.keeps_state && !context_.signature.writes_inputs) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (is_ready[i]) run_together(instance, {rows[i]}, {true});
    }
    return;
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!is_ready[i]) continue;
    SequenceItem& item = item_of(*rows[i]);
    InferResult result;
    result.status = std::move(results[i].status);
    result.outputs = std::move(results[i].outputs);
    if (has_failed && now_ns() >= item.request.deadline_ns) {
      result.status = absl::DeadlineExceededError("Request timeout expired");
    }
    result.copied_bytes = std::exchange(copied_bytes, 0);
    result.times = times;
    answer(std::move(rows[i]->request), std::move(result));
  }
}

std::vector<InferTensor> SequenceStrategy::gather(const std::vector<Row*>& rows, const std::vector<bool>& is_ready,
                                                  std::vector<size_t>& indices, uint64_t& copied_bytes) const {
  std::vector<InferTensor> inputs;
  std::vector<const InferTensor*> parts(rows.size());
  for (size_t k = 0; k < model_.request_signature().inputs.size(); ++k) {
    bool is_there = false;
    for (size_t i = 0; i < rows.size(); ++i) {
      parts[i] = is_ready[i] ? item_of(*rows[i]).input(k) : nullptr;
      is_there = is_there || parts[i] != nullptr;
    }
    if (!is_there) continue;
    inputs.push_back(stack_rows(parts, &copied_bytes));
    indices.push_back(model_.model_input(k));
  }
  std::vector<const Tensor*> states(rows.size());
  for (size_t k = 0; k < model_.states().size(); ++k) {
    const SequenceModel::State& state = model_.states()[k];
    for (size_t i = 0; i < rows.size(); ++i) states[i] = is_ready[i] ? &state_of(*rows[i])[k] : nullptr;
    inputs.push_back(make_state(state.input_name, stack_rows(states, &copied_bytes)));
    indices.push_back(state.input);
  }
  std::vector<SequenceModel::RowControls> controls(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!is_ready[i]) continue;
    const InferRequest& request = item_of(*rows[i]).request;
    controls[i] = {.sequence = &request.sequence,
                   .is_start = request.is_sequence_start,
                   .is_end = request.is_sequence_end,
                   .is_ready = true};
  }
  model_.add_controls(controls, inputs, indices);
  return inputs;
}

void SequenceStrategy::run_model(size_t instance, const std::vector<Row*>& rows, const std::vector<bool>& is_ready,
                                 std::vector<RowResult>& results, RequestTimes& times, uint64_t& copied_bytes) {
  std::vector<size_t> indices;
  std::vector<InferTensor> inputs = gather(rows, is_ready, indices, copied_bytes);
  std::vector<const InferTensor*> pointers(model_.signature().inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) pointers[indices[i]] = &inputs[i];
  times.compute_input_end_ns = now_ns();
  RunResult run = context_.workers->run(instance, pointers, [&] {
    return std::equal(rows.begin(), rows.end(), is_ready.begin(), is_ready.end(),
                      [](const Row* row, bool ready) { return !ready || item_of(*row).is_dead(); });
  });
  times.compute_output_start_ns = now_ns();
  copied_bytes += run.copied_bytes;
  const std::vector<Tensor> states = model_.take_states(run.outputs, rows.size(), inputs, &copied_bytes);
  std::vector<std::vector<InferTensor>> outputs(rows.size());
  for (InferTensor& output : run.outputs) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!is_ready[i]) continue;
      outputs[i].push_back(model_.has_batch_dimension() ? row_of(output, i, rows.size()) : output);
    }
  }
  keep_states(rows, is_ready, states, results);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!is_ready[i] || !results[i].status.ok()) continue;
    try {
      results[i].outputs = select_outputs(std::move(outputs[i]), model_.request_signature(), context_.model,
                                          item_of(*rows[i]).request.requested_outputs);
    } catch (...) {
      results[i].status = current_exception_status();
    }
  }
}

// A sequence whose state cannot be allocated is lost, because the run may have overwritten the previous state.
void SequenceStrategy::keep_states(const std::vector<Row*>& rows, const std::vector<bool>& is_ready,
                                   const std::vector<Tensor>& states, std::vector<RowResult>& results) const {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!is_ready[i]) continue;
    KeptState& kept = kept_of(*rows[i]->sequence);
    for (size_t k = 0; k < states.size(); ++k) kept.state[k] = rows.size() > 1 ? row_of(states[k], i) : states[k];
    const uint64_t bytes = item_of(*rows[i]).is_end ? 0 : open_bytes(model_, kept.state);
    if (bytes == 0) continue;
    try {
      kept.hold = item_of(*rows[i]).sink.hold_memory(bytes);
    } catch (...) {
      results[i].status = current_exception_status();
      rows[i]->sequence->data = nullptr;
    }
  }
}

void SequenceStrategy::reject(Rejections& rejected) {
  for (SequenceRejection& one : rejected) {
    InferResult result;
    result.status = absl::Status(to_status_code(one.code), one.reason);
    answer(std::move(one.request), std::move(result));
  }
  rejected.clear();
}

void SequenceStrategy::answer(std::unique_ptr<SequenceRequest> request, InferResult result) {
  TENSORD_DELAY("sequence.answer");
  SequenceItem& item = static_cast<SequenceItem&>(*request);
  item.request.inputs.clear();  // frees the request's memory before answering
  item.request.output_places.clear();
  result.times.arrived_ns = item.request.arrived_ns;
  result.times.queue_start_ns = item.enqueued_ns;
  const bool was_queued = item.enqueued_ns != 0;
  if (!config_.oldest_preserves_ordering || !was_queued) {
    item.sink.respond(std::move(result), /*is_final=*/true);
    return;
  }
  order_.deliver(item.ticket, [&sink = item.sink, shared = std::make_shared<InferResult>(std::move(result))] {
    sink.respond(std::move(*shared), /*is_final=*/true);
  });
}

}  // namespace

std::unique_ptr<ExecutionStrategy> make_sequence_strategy(const StrategyContext& context) {
  return std::make_unique<SequenceStrategy>(context);
}

}  // namespace tensord::server
