#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>

#include "core/base/delay_point.h"
#include "core/base/log.h"
#include "core/tensor/device_copy.h"
#include "server/executor/requests/status.h"
#include "server/executor/strategies/batch_inputs.h"
#include "server/executor/strategies/batch_rules.h"
#include "server/executor/strategies/execution_strategy.h"
#include "server/executor/strategies/inline_heuristic.h"
#include "server/scheduler/reorder_buffer.h"
#include "server/scheduler/scheduler.h"

namespace tensord::server {
namespace {

// Batching stops after this many consecutive batches failed although each of their requests succeeded alone.
constexpr int kMaxFalseBatches = 3;

bool has_pieces(const InferRequest& request) {
  return std::any_of(request.inputs.begin(), request.inputs.end(),
                     [](const InferTensor& input) { return bool{input.scattered}; });
}

// The same tensor with `rows` rows of zeros or empty strings.
InferTensor with_rows(const InferTensor& tensor, int64_t rows) {
  InferTensor out;
  out.name = tensor.name;
  out.datatype = tensor.datatype;
  out.shape = tensor.shape;
  out.shape[0] = rows;
  const auto count = static_cast<size_t>(checked_numel(out.shape));
  if (tensor.datatype == DataType::kBytes) {
    out.strings.resize(count);
    return out;
  }
  out.tensor = Tensor::empty(out.shape, tensor.tensor.defined() ? tensor.tensor.dtype() : *to_dtype(tensor.datatype));
  if (count > 0) std::memset(out.tensor.raw_data(), 0, out.tensor.size_bytes());
  return out;
}

size_t input_bytes(const InferRequest& request) {
  size_t bytes = 0;
  for (const InferTensor& input : request.inputs) bytes += input.tensor.defined() ? input.tensor.size_bytes() : 0;
  return bytes;
}

class BatchStrategy final : public ExecutionStrategy {
 public:
  explicit BatchStrategy(const StrategyContext& context);
  ~BatchStrategy() override { stop(); }
  void submit(InferRequest&& request, InferSink& sink) override;
  void record_cancelled() override { scheduler_.drop_cancelled(); }
  bool gathers_inputs() const override { return rules_.max_rows > 1; }
  bool takes_device_tensors() const override { return context_.signature.is_on_device(); }
  void stop() override { scheduler_.stop(); }

 private:
  class InferTask;
  using Tasks = std::span<InferTask* const>;

  void run_batch(size_t worker, std::vector<TaskPtr> tasks, int64_t now_ns);
  // Run one request, or several as a batch, and answer.
  void run_in_place(size_t worker, InferTask& task, int64_t now_ns);
  void run_gathered(size_t worker, Tasks tasks, int64_t now_ns);
  std::vector<InferTensor> run_without_rows(size_t worker, InferTask& task, std::span<const InferTensor* const> inputs,
                                            InferResult& result);
  void run_apart(size_t worker, Tasks tasks, const BatchInputs& inputs, int64_t now_ns, const absl::Status& reason);
  std::vector<InferTensor> run_model(size_t worker, std::span<const InferTensor* const> inputs, Tasks tasks,
                                     RequestTimes& times, uint64_t& copied_bytes,
                                     std::span<const OutputPlace> places = {});
  static std::vector<std::string> resident_outputs(Tasks tasks);
  // The outputs of a run that are for this task, those without a place on a device in the host's memory.
  std::vector<InferTensor> outputs_of(const InferTask& task, std::vector<InferTensor> outputs) const;
  absl::Status failure(const InferTask& task, absl::Status status) const;
  bool is_dead(const InferTask& task) const;
  void record_batch(bool is_good, const absl::Status& reason);
  void answer(InferTask& task, InferResult result);
  bool is_short(const InferRequest& request) const;
  int64_t now_ns() const { return scheduler_.clock().now_ns(); }

  const StrategyContext context_;
  const BatchRules rules_;
  const RaggedRules ragged_;
  std::unique_ptr<RateLimiter::Client> rate_limiter_;
  InlineHeuristic inline_heuristic_;  // of one request
  std::atomic<int> false_batches_{0};
  std::atomic<int64_t> empty_count_{0};  // requests with zero rows
  ReorderBuffer order_;
  Scheduler scheduler_;  // declared last: its threads use the other members
};

class BatchStrategy::InferTask final : public Task {
 public:
  InferTask(BatchStrategy& path, InferRequest&& request, InferSink& sink)
      : request(std::move(request)), sink(sink), pending(path.context_.metrics), path_(path) {
    deadline_ns = this->request.deadline_ns;
    timeout_us = this->request.queue_timeout_us;
    priority = this->request.priority;
    rows = this->request.batch_size;
  }

  void run(size_t worker, int64_t now_ns) override {
    if (rows > 0 && has_to_gather()) {
      InferTask* const self = this;
      path_.run_gathered(worker, {&self, 1}, now_ns);
    } else {
      path_.run_in_place(worker, *this, now_ns);
    }
  }

  void reject(ErrorCode code, const char* reason) override {
    InferResult result;
    result.status = absl::Status(to_status_code(code), reason);
    result.times.arrived_ns = request.arrived_ns;
    result.times.queue_start_ns = enqueued_ns;
    sink.respond(std::move(result), /*is_final=*/true);
  }

  bool is_cancelled() const override { return sink.is_cancelled(); }

  InferRequest request;
  InferSink& sink;
  PendingRequest pending;  // until it runs

 private:
  bool has_to_gather() const { return path_.ragged_.has_buckets() || has_pieces(request); }

  BatchStrategy& path_;
};

BatchStrategy::BatchStrategy(const StrategyContext& context)
    : context_(context),
      rules_(make_batch_rules(context.config, context.signature, context.default_queue_size)),
      ragged_(context.signature, context.config),
      rate_limiter_(make_rate_limiter_client(context)),
      scheduler_(std::make_unique<BatchPolicy>(rules_),
                 {.workers = static_cast<int>(context.workers->size()),
                  .pool = context.pool,
                  .run_batch = [this](size_t worker, std::vector<TaskPtr> tasks,
                                      int64_t now_ns) { run_batch(worker, std::move(tasks), now_ns); },
                  .rate_limiter = rate_limiter_.get()}) {}

void BatchStrategy::submit(InferRequest&& request, InferSink& sink) {
  const bool may_run_here = is_short(request);
  auto task = std::make_unique<InferTask>(*this, std::move(request), sink);
  if (rules_.max_rows > 1) task->batch_key = make_batch_key(task->request, ragged_);
  // A request with zero rows shares a run with no other.
  if (task->rows == 0) task->batch_key = {-1, empty_count_.fetch_add(1, std::memory_order_relaxed)};
  scheduler_.submit(std::move(task), may_run_here);
}

// Copying a scattered input is left to a worker too, and so is what would move this thread to other cores.
bool BatchStrategy::is_short(const InferRequest& request) const {
  return context_.signature.has_bounded_work && !context_.workers->are_placed() && !has_pieces(request) &&
         inline_heuristic_.is_short(input_bytes(request));
}

bool BatchStrategy::is_dead(const InferTask& task) const {
  return task.sink.is_cancelled() || (task.deadline_ns != kNoDeadline && now_ns() >= task.deadline_ns);
}

// A run continues while any of its clients waits.
std::vector<InferTensor> BatchStrategy::run_model(size_t worker, std::span<const InferTensor* const> inputs,
                                                  Tasks tasks, RequestTimes& times, uint64_t& copied_bytes,
                                                  std::span<const OutputPlace> places) {
  for (InferTask* const task : tasks) task->pending.end();
  const auto nobody_waits = [this, tasks] {
    return std::all_of(tasks.begin(), tasks.end(), [this](const InferTask* task) { return is_dead(*task); });
  };
  const std::vector<std::string> resident = resident_outputs(tasks);
  RunResult run = context_.workers->run(worker, inputs, std::cref(nobody_waits), places, resident);
  times.compute_output_start_ns = now_ns();
  copied_bytes += run.copied_bytes;
  return std::move(run.outputs);
}

std::vector<std::string> BatchStrategy::resident_outputs(Tasks tasks) {
  std::vector<std::string> names;
  for (const InferTask* task : tasks) {
    for (const OutputPlace& place : task->request.output_places) {
      if (!place.memory->device().is_host()) names.push_back(place.name);
    }
  }
  return names;
}

std::vector<InferTensor> BatchStrategy::outputs_of(const InferTask& task, std::vector<InferTensor> outputs) const {
  outputs = select_outputs(std::move(outputs), context_.signature, context_.model, task.request.requested_outputs);
  for (InferTensor& output : outputs) {
    if (!output.tensor.defined() || output.tensor.device().is_host()) continue;
    const bool has_place = std::ranges::any_of(task.request.output_places, [&output](const OutputPlace& place) {
      return place.name == output.name && !place.memory->device().is_host();
    });
    if (!has_place) output.tensor = host_copy(output.tensor);
  }
  return outputs;
}

// The status of a failed run for this task: a run stopped because of the deadline reports the deadline.
absl::Status BatchStrategy::failure(const InferTask& task, absl::Status status) const {
  const bool is_late = task.deadline_ns != kNoDeadline && now_ns() >= task.deadline_ns;
  if (!absl::IsCancelled(status) || !is_late) return status;
  return absl::DeadlineExceededError("Deadline Exceeded: the deadline passed while the model ran");
}

void BatchStrategy::answer(InferTask& task, InferResult result) {
  task.request.output_places.clear();  // releases shared memory that the client may have unregistered
  if (!rules_.keeps_order) {
    task.sink.respond(std::move(result), /*is_final=*/true);
    return;
  }
  // The result may have to wait for earlier responses, and the task does not live that long.
  auto held = std::make_shared<InferResult>(std::move(result));
  order_.deliver(task.turn, [held, &sink = task.sink] { sink.respond(std::move(*held), /*is_final=*/true); });
}

// Some models fail on zero rows, for example at x.view(x.size(0), -1). For those, a run with one row of zeros gives the
// outputs' shapes.
std::vector<InferTensor> BatchStrategy::run_without_rows(size_t worker, InferTask& task,
                                                         std::span<const InferTensor* const> inputs,
                                                         InferResult& result) {
  InferTask* const self = &task;
  const MemoryOwnerScope owner_scope(context_.workers->owner());
  const auto run_rows = [&](int64_t rows) {
    std::vector<InferTensor> given(inputs.size());
    std::vector<const InferTensor*> pointers(inputs.size(), nullptr);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == nullptr) continue;
      given[i] = with_rows(*inputs[i], rows);
      pointers[i] = &given[i];
    }
    return run_model(worker, pointers, {&self, 1}, result.times, result.copied_bytes);
  };
  try {
    return run_rows(0);
  } catch (const Error& error) {
    const bool is_over = error.code() == ErrorCode::kCancelled || error.code() == ErrorCode::kDeadlineExceeded;
    if (is_over || context_.signature.keeps_state) throw;
    const std::exception_ptr reason = std::current_exception();
    std::vector<InferTensor> outputs;
    try {
      outputs = run_rows(1);
    } catch (const Error&) {
      std::rethrow_exception(reason);
    }
    for (InferTensor& output : outputs) {
      if (output.shape.empty() || output.shape[0] != 1) std::rethrow_exception(reason);
      output = with_rows(output, 0);
    }
    return outputs;
  }
}

void BatchStrategy::run_in_place(size_t worker, InferTask& task, int64_t start_ns) {
  InferTask* const self = &task;
  InferResult result;
  result.times.arrived_ns = task.request.arrived_ns;
  result.times.queue_start_ns = task.enqueued_ns;
  result.times.compute_start_ns = result.times.compute_input_end_ns = result.times.compute_output_start_ns = start_ns;
  try {
    absl::InlinedVector<const InferTensor*, 8> inputs(context_.signature.inputs.size(), nullptr);
    for (size_t i = 0; i < task.request.inputs.size(); ++i) {
      inputs[task.request.input_indices[i]] = &task.request.inputs[i];
    }
    std::vector<InferTensor> outputs = task.rows == 0 ? run_without_rows(worker, task, inputs, result)
                                                      : run_model(worker, inputs, {&self, 1}, result.times,
                                                                  result.copied_bytes, task.request.output_places);
    result.outputs = outputs_of(task, std::move(outputs));
  } catch (...) {
    result.status = failure(task, current_exception_status());
    result.outputs.clear();
  }
  const size_t size_bytes = input_bytes(task.request);
  task.request.inputs.clear();  // frees the request's memory before answering
  result.times.compute_end_ns = now_ns();
  context_.metrics.count_execution(task.rows, result.times, result.status.ok());
  inline_heuristic_.note(size_bytes, result.times.compute_end_ns - start_ns);
  answer(task, std::move(result));
  context_.workers->record_answered();
}

void BatchStrategy::run_batch(size_t worker, std::vector<TaskPtr> batch, int64_t start_ns) {
  if (false_batches_.load(std::memory_order_relaxed) >= kMaxFalseBatches) {
    for (size_t i = 0; i < batch.size(); ++i) batch[i]->run(worker, i == 0 ? start_ns : now_ns());
    return;
  }
  std::vector<InferTask*> tasks;
  for (const TaskPtr& task : batch) tasks.push_back(static_cast<InferTask*>(task.get()));
  run_gathered(worker, tasks, start_ns);
}

void BatchStrategy::run_gathered(size_t worker, Tasks tasks, int64_t start_ns) {
  RequestTimes times{
      .compute_start_ns = start_ns, .compute_input_end_ns = start_ns, .compute_output_start_ns = start_ns};
  std::optional<BatchInputs> inputs;
  std::vector<std::vector<InferTensor>> outputs(tasks.size());
  std::vector<uint64_t> copied(tasks.size(), 0);
  absl::Status status;
  int64_t rows = 0;
  for (const InferTask* task : tasks) rows += task->rows;
  try {
    std::vector<InferRequest*> requests;
    for (InferTask* task : tasks) requests.push_back(&task->request);
    const MemoryOwnerScope owner_scope(context_.workers->owner());
    inputs.emplace(context_.signature, ragged_, requests);
    times.compute_input_end_ns = times.compute_output_start_ns = now_ns();
    for (size_t i = 0; i < tasks.size(); ++i) copied[i] = inputs->copied_bytes(i);
    // The results of a batch come in one piece.
    const bool is_alone = tasks.size() == 1 && !inputs->is_changed();
    const std::span<const OutputPlace> places =
        is_alone ? std::span<const OutputPlace>(tasks[0]->request.output_places) : std::span<const OutputPlace>();
    outputs = inputs->split(run_model(worker, inputs->inputs(), tasks, times, copied[0], places), context_.signature);
  } catch (...) {
    status = current_exception_status();
  }
  if (!inputs && tasks.size() > 1) {
    // The batch could not be allocated; the requests are unchanged.
    for (InferTask* const task : tasks) task->run(worker, now_ns());
    return;
  }
  times.compute_end_ns = now_ns();
  context_.metrics.count_execution(rows, times, status.ok());
  const bool may_repeat = inputs && inputs->is_changed() && !context_.signature.keeps_state;
  if (!status.ok() && may_repeat &&
      !std::all_of(tasks.begin(), tasks.end(), [this](const InferTask* task) { return is_dead(*task); })) {
    run_apart(worker, tasks, *inputs, start_ns, status);
    return;
  }
  inputs.reset();
  TENSORD_DELAY("batch.answer");
  if (status.ok() && tasks.size() > 1) record_batch(true, status);
  for (size_t i = 0; i < tasks.size(); ++i) {
    InferResult result;
    result.status = failure(*tasks[i], status);
    result.copied_bytes = copied[i];
    result.times = times;
    result.times.arrived_ns = tasks[i]->request.arrived_ns;
    result.times.queue_start_ns = tasks[i]->enqueued_ns;
    if (status.ok()) {
      try {
        result.outputs = outputs_of(*tasks[i], std::move(outputs[i]));
      } catch (...) {
        result.status = current_exception_status();
      }
    }
    answer(*tasks[i], std::move(result));
  }
  context_.workers->record_answered();
}

// A batch failed, perhaps because of one request, so each request runs alone.
void BatchStrategy::run_apart(size_t worker, Tasks tasks, const BatchInputs& inputs, int64_t start_ns,
                              const absl::Status& reason) {
  bool is_good = true;
  for (size_t i = 0; i < tasks.size(); ++i) {
    InferTask* const task = tasks[i];
    InferResult result;
    result.copied_bytes = inputs.copied_bytes(i);
    result.times = {.arrived_ns = task->request.arrived_ns,
                    .queue_start_ns = task->enqueued_ns,
                    .compute_start_ns = start_ns,
                    .compute_input_end_ns = start_ns,
                    .compute_output_start_ns = start_ns};
    try {
      const MemoryOwnerScope owner_scope(context_.workers->owner());
      const BatchInputs alone = inputs.alone(i);
      std::vector<InferTensor> outputs =
          run_model(worker, alone.inputs(), {&task, 1}, result.times, result.copied_bytes);
      result.outputs = outputs_of(*task, std::move(outputs));
    } catch (...) {
      result.status = failure(*task, current_exception_status());
      is_good = false;
    }
    result.times.compute_end_ns = now_ns();
    context_.metrics.count_execution(task->rows, result.times, result.status.ok());
    start_ns = result.times.compute_end_ns;
    answer(*task, std::move(result));
  }
  if (is_good && tasks.size() > 1) record_batch(false, reason);
  context_.workers->record_answered();
}

void BatchStrategy::record_batch(bool is_good, const absl::Status& reason) {
  if (is_good) {
    if (false_batches_.load(std::memory_order_relaxed) != 0) false_batches_.store(0, std::memory_order_relaxed);
    return;
  }
  if (false_batches_.fetch_add(1, std::memory_order_relaxed) + 1 != kMaxFalseBatches) return;
  log(LogLevel::kWarning, "batches fail where their requests do not; from now on the model gets one at a time",
      {{"model", context_.model}, {"reason", std::string(reason.message())}});
}

}  // namespace

std::unique_ptr<ExecutionStrategy> make_batch_strategy(const StrategyContext& context) {
  return std::make_unique<BatchStrategy>(context);
}

}  // namespace tensord::server
