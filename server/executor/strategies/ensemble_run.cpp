#include "server/executor/strategies/ensemble_run.h"

#include <algorithm>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "server/executor/model/reshape.h"
#include "server/executor/requests/status.h"
#include "server/executor/strategies/ensemble_branch.h"
#include "server/executor/strategies/ensemble_tensors.h"
#include "server/tracing/request_trace.h"

namespace tensord::server {
namespace {

constexpr int kMaxDepth = 16;  // a reloaded ensemble may run itself by now
constexpr size_t kNoStep = SIZE_MAX;

}  // namespace

// Receives the responses of one step.
class EnsembleRun::StepSink final : public InferSink {
 public:
  StepSink(std::shared_ptr<EnsembleRun> run, Branch& branch, size_t step, std::shared_ptr<ModelVersion> model)
      : branch(branch), step(step), model(std::move(model)), run_(std::move(run)) {}

  void respond(InferResult result, bool is_final) override {
    note(result, is_final);
    const std::shared_ptr<EnsembleRun> run = run_;
    run->on_answer(*this, std::move(result), is_final);
    if (is_final) delete this;
    run->advance();
  }
  bool is_cancelled() const override { return run_->is_stopped(); }
  std::shared_ptr<const void> hold_memory(uint64_t size_bytes) override { return run_->sink_.hold_memory(size_bytes); }

  Branch& branch;
  const size_t step;
  const std::shared_ptr<ModelVersion> model;
  std::shared_ptr<RequestTrace> trace;
  int64_t start_ns = 0;

 private:
  void note(const InferResult& result, bool is_final) {
    const int code = static_cast<int>(result.status.code());
    ModelMetrics& metrics = model->metrics();
    metrics.add_copied(result.copied_bytes);
    if (model->config().is_decoupled) {
      const int64_t now = Clock::system().now_ns();
      metrics.count_response(responses_++, result.times, previous_ns_ ? previous_ns_ : start_ns, code, result.is_empty);
      previous_ns_ = now;
      if (trace) trace->record_response(now);
    }
    if (!is_final) return;
    metrics.count_answer(result.times, code, std::string(result.status.message()));
    metrics.add_in_flight(-1);
    if (trace) trace->record_answer(result.times, code, std::string(result.status.message()));
  }

  const std::shared_ptr<EnsembleRun> run_;
  uint64_t responses_ = 0;
  int64_t previous_ns_ = 0;
};

EnsembleRun::EnsembleRun(const Context& context, InferRequest&& request, InferSink& sink)
    : context_(context),
      request_(std::move(request)),
      sink_(sink),
      is_needed_(context.plan.steps.size()),
      root_(std::make_unique<Branch>()) {
  const EnsemblePlan& plan = context_.plan;
  start_ns_ = Clock::system().now_ns();
  for (const std::string& name : request_.requested_outputs) wanted_.push_back(plan.tensor_named(name));
  if (wanted_.empty()) wanted_ = plan.outputs;
  Branch& root = *root_;
  root.tensors.resize(plan.tensors.size());
  root.is_there.resize(plan.tensors.size());
  root.uses.resize(plan.tensors.size());
  root.is_started.resize(plan.steps.size());
  for (const size_t tensor : wanted_) ++root.uses[tensor];
  // A step is needed if anything uses its outputs; then it uses its inputs.
  for (bool grows = true; grows;) {
    grows = false;
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      const auto& outputs = plan.steps[i].outputs;
      if (is_needed_[i] ||
          std::none_of(outputs.begin(), outputs.end(), [&](const auto& link) { return root.uses[link.tensor] > 0; }))
        continue;
      for (const auto& link : plan.steps[i].inputs) ++root.uses[link.tensor];
      is_needed_[i] = grows = true;
    }
  }
  for (size_t i = 0; i < request_.inputs.size(); ++i) {
    const size_t tensor = plan.inputs[request_.input_indices[i]];
    root.tensors[tensor] = std::move(request_.inputs[i]);
    root.is_there[tensor] = true;
  }
  request_.inputs.clear();
  request_.output_places.clear();
}

// Applies the reshapes in the ensemble's own configuration.
void EnsembleRun::reshape_inputs() {
  const EnsemblePlan& plan = context_.plan;
  for (const size_t input : request_.input_indices) {
    const TensorSpec& spec = plan.signature.inputs[input];
    if (spec.reshape && spec.shape) reshape(root_->tensors[plan.inputs[input]], *spec.shape, *spec.reshape);
  }
}

EnsembleRun::~EnsembleRun() = default;

void EnsembleRun::start() {
  {
    const MutexLock lock(mutex_);
    if (request_.ensemble_depth >= kMaxDepth) {
      fail_with(absl::FailedPreconditionError("more ensembles lie in each other than may"));
    }
    try {
      reshape_inputs();
    } catch (...) {
      fail_with(current_exception_status());
    }
    queue(*root_);
  }
  advance();
}

void EnsembleRun::queue(Branch& branch) {
  if (branch.is_queued) return;
  branch.is_queued = true;
  changed_.push_back(&branch);
}

// Starts steps and sends responses until nothing more can be done. Only one thread does this at a time: another thread
// that brings a response, or a nested submit(), leaves its result to that thread.
void EnsembleRun::advance() {
  const std::shared_ptr<EnsembleRun> self = shared_from_this();
  MutexLock lock(mutex_);
  if (is_advancing_ || is_over_) return;
  is_advancing_ = true;
  for (;;) {
    if (std::optional<Job> job = next_job()) {
      lock.unlock();
      submit(std::move(*job));
      lock.lock();
      continue;
    }
    std::optional<Answer> answer = next_answer();
    if (!answer) break;
    lock.unlock();
    give(std::move(*answer));
    lock.lock();
    if (is_over_) break;
  }
  is_advancing_ = false;
  if (!is_over_) return;
  lock.unlock();
  context_.on_end(this);
}

std::optional<EnsembleRun::Job> EnsembleRun::next_job() {
  if (has_failed_) changed_.clear();
  while (!changed_.empty()) {
    Branch& branch = *changed_.front();
    Job job;
    if (take_job(branch, job)) return job;
    changed_.pop_front();
    branch.is_queued = false;
  }
  return std::nullopt;
}

// The branch's next step that can start. A decoupled step starts only after all others that can run have ended.
size_t EnsembleRun::next_step(const Branch& branch) const {
  const EnsemblePlan& plan = context_.plan;
  size_t decoupled = kNoStep;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (branch.is_started[i] || !is_needed_[i]) continue;
    const auto& inputs = plan.steps[i].inputs;
    // A tensor that no step makes and the request does not provide is an optional input.
    const bool can_start = std::all_of(inputs.begin(), inputs.end(), [&](const auto& link) {
      return branch.is_there[link.tensor] || std::ranges::find(plan.inputs, link.tensor) != plan.inputs.end();
    });
    if (!can_start) continue;
    if (!plan.steps[i].is_decoupled) return i;
    if (decoupled == kNoStep) decoupled = i;
  }
  return branch.running == 0 ? decoupled : kNoStep;
}

bool EnsembleRun::take_job(Branch& branch, Job& job) {
  if (branch.is_forked) return false;
  job.step = next_step(branch);
  if (job.step == kNoStep) {
    if (branch.running == 0) finish_branch(branch);
    return false;
  }
  job.branch = &branch;
  const EnsemblePlan::Step& step = context_.plan.steps[job.step];
  for (const auto& link : step.inputs) {
    if (!branch.is_there[link.tensor]) continue;
    InferTensor& input = job.inputs.emplace_back(take_tensor(branch, link.tensor));
    input.name = link.name;
    input.is_own = false;  // shared with other steps, the answer and the model that made it
    job.declared.push_back(wire_type(input, context_.plan.declared[link.tensor]));
    fit_batch(input, link.fit);
  }
  branch.is_started[job.step] = true;
  branch.is_forked = step.is_decoupled;
  ++branch.running;
  ++running_;
  return true;
}

// The last user takes the tensor itself, so that its memory is freed as soon as the step is done.
InferTensor EnsembleRun::take_tensor(Branch& branch, size_t tensor) {
  if (--branch.uses[tensor] > 0) return branch.tensors[tensor];
  return std::move(branch.tensors[tensor]);
}

InferRequest EnsembleRun::make_request(Job& job, const ModelVersion& model) const {
  const EnsemblePlan::Step& step = context_.plan.steps[job.step];
  InferRequest request;
  for (InferTensor& input : job.inputs) {
    if (!input.tensor.defined() || input.tensor.is_contiguous()) continue;
    input.tensor = input.tensor.contiguous();  // requests are contiguous, results may not be
    model.metrics().add_copied(input.tensor.size_bytes());
  }
  request.id = request_.id;
  std::vector<std::string> datatypes;
  std::vector<InputHeader> headers;
  for (const DataType datatype : job.declared) datatypes.emplace_back(name_of(datatype));
  for (size_t i = 0; i < job.inputs.size(); ++i) {
    headers.push_back({job.inputs[i].name, datatypes[i], job.inputs[i].shape});
  }
  request.input_indices = match_inputs(model.signature(), model.name(), headers);
  request.inputs = std::move(job.inputs);
  if (model.signature().max_batch_size > 0 && !request.inputs.empty()) {
    request.batch_size = request.inputs.front().shape[0];
  }
  for (const auto& link : step.outputs) request.requested_outputs.push_back(link.name);
  check_requested_outputs(model.signature(), model.name(), request.requested_outputs);
  request.priority = request_.priority;
  request.arrived_ns = Clock::system().now_ns();
  request.deadline_ns = request_.deadline_ns;
  request.queue_timeout_us = request_.queue_timeout_us;
  request.sequence = request_.sequence;
  request.is_sequence_start = request_.is_sequence_start;
  request.is_sequence_end = request_.is_sequence_end;
  request.ensemble_depth = request_.ensemble_depth + 1;
  request.parameters = request_.parameters;
  return request;
}

// Ends a job that could not be submitted.
void EnsembleRun::give_up(const Job& job, const absl::Status& status) {
  {
    const MutexLock lock(mutex_);
    --job.branch->running;
    --running_;
    fail_with(status);
  }
  record_cancelled();
}

void EnsembleRun::submit(Job job) {
  const EnsemblePlan::Step& step = context_.plan.steps[job.step];
  StepSink* sink = nullptr;
  InferRequest request;
  try {
    std::shared_ptr<ModelVersion> model = context_.directory.find(step.model, step.version);
    if (model->config().is_decoupled != step.is_decoupled) {
      fail(ErrorCode::kFailedPrecondition, "model '", step.model,
           "' was loaded again with another transaction policy; the ensemble must be loaded again");
    }
    request = make_request(job, *model);
    if (request_.trace) request.trace = request_.trace->make_step(model->name(), model->version());
    sink = new StepSink(shared_from_this(), *job.branch, job.step, std::move(model));
    sink->trace = request.trace;
    sink->start_ns = request.arrived_ns;
  } catch (...) {
    return give_up(job, current_exception_status());
  }
  {
    const MutexLock lock(mutex_);
    working_.insert(sink);
  }
  const std::shared_ptr<ModelVersion> model = sink->model;
  model->metrics().add_in_flight(1);
  model->submit(std::move(request), *sink);
  // The run may have failed between the check and the submission, so that cancellation was not recorded.
  if (is_stopped()) model->record_cancelled();
}

void EnsembleRun::on_answer(StepSink& sink, InferResult result, bool is_final) {
  bool has_failed = false;
  {
    const MutexLock lock(mutex_);
    Branch& branch = sink.branch;
    const EnsemblePlan::Step& step = context_.plan.steps[sink.step];
    if (!result.status.ok()) {
      fail_with(result.status);
    } else if (!has_failed_ && !result.is_empty) {
      if (step.is_decoupled) {
        add_child(branch, sink.step, result);
      } else {
        put_outputs(step, result, branch);
      }
    }
    if (is_final) {
      add_times(result.times);
      working_.erase(&sink);
      --running_;
      --branch.running;
      if (step.is_decoupled) {
        branch.is_fork_over = true;
        if (branch.active == 0) finish_branch(branch);
      }
      queue(branch);
    }
    has_failed = has_failed_;
  }
  if (has_failed) record_cancelled();
}

void EnsembleRun::put_outputs(const EnsemblePlan::Step& step, InferResult& result, Branch& branch) {
  for (const auto& link : step.outputs) {
    const auto found = std::find_if(result.outputs.begin(), result.outputs.end(),
                                    [&](const InferTensor& output) { return output.name == link.name; });
    if (found == result.outputs.end()) {
      fail_with(absl::FailedPreconditionError(concat("model '", step.model, "' gave no output '", link.name, "'")));
      return;
    }
    if (branch.uses[link.tensor] > 0) branch.tensors[link.tensor] = std::move(*found);
    branch.is_there[link.tensor] = true;
  }
  for (auto& [key, value] : result.parameters) branch.parameters[key] = std::move(value);
}

void EnsembleRun::add_child(Branch& branch, size_t step, InferResult& result) {
  auto child = std::make_unique<Branch>();
  child->parent = &branch;
  child->tensors = branch.tensors;
  child->is_there = branch.is_there;
  child->uses = branch.uses;
  child->is_started = branch.is_started;
  child->parameters = branch.parameters;
  put_outputs(context_.plan.steps[step], result, *child);
  branch.parked.push_back(child.get());
  branch.children.push_back(std::move(child));
  start_children(branch);
}

void EnsembleRun::start_children(Branch& branch) {
  const size_t max = context_.plan.max_inflight ? context_.plan.max_inflight : kNoStep;
  // Invariant: while a branch is parked, another one is active.
  while (!branch.parked.empty() && branch.active < max) {
    ++branch.active;
    queue(*branch.parked.front());
    branch.parked.pop_front();
  }
}

void EnsembleRun::finish_branch(Branch& branch) {
  branch.is_done = true;
  Branch* parent = branch.parent;
  if (!parent) return;
  --parent->active;
  start_children(*parent);
  if (parent->is_fork_over && parent->active == 0) finish_branch(*parent);
}

void EnsembleRun::fail_with(const absl::Status& status) {
  if (!has_failed_) status_ = status;
  has_failed_.store(true, std::memory_order_release);
}

void EnsembleRun::record_cancelled() {
  std::vector<std::shared_ptr<ModelVersion>> models;
  {
    const MutexLock lock(mutex_);
    // After the end, the sinks may be destroyed.
    if (is_over_ || !is_stopped()) return;
    for (const StepSink* sink : working_) models.push_back(sink->model);
  }
  for (const auto& model : models) model->record_cancelled();
}

}  // namespace tensord::server
