// Sends the responses of an ensemble run in the order of the branches that made them.
#include <algorithm>

#include "core/base/clock.h"
#include "server/executor/model/reshape.h"
#include "server/executor/requests/status.h"
#include "server/executor/strategies/ensemble_branch.h"
#include "server/executor/strategies/ensemble_run.h"
#include "server/executor/strategies/ensemble_tensors.h"

namespace tensord::server {
namespace {

// Adds the parameters of a response within a sequence.
void add_sequence(const InferRequest& request, ParameterMap& parameters) {
  if (request.sequence.is_none()) return;
  if (request.sequence.text.empty()) {
    parameters.try_emplace("sequence_id", static_cast<int64_t>(request.sequence.number));
  } else {
    parameters.try_emplace("sequence_id", request.sequence.text);
  }
  parameters.try_emplace("sequence_start", request.is_sequence_start);
  parameters.try_emplace("sequence_end", request.is_sequence_end);
}

}  // namespace

// Moves the branch's available responses to ready_. Returns true if the branch has no more.
bool EnsembleRun::collect(Branch& branch) {
  if (!branch.is_forked) {
    if (branch.is_done) ready_.push_back(take_result(branch));
    return branch.is_done;
  }
  while (!branch.children.empty() && collect(*branch.children.front())) branch.children.pop_front();
  return branch.is_done;
}

std::optional<EnsembleRun::Answer> EnsembleRun::next_answer() {
  if (!has_failed_ && root_) {
    try {
      if (collect(*root_)) root_.reset();
    } catch (...) {
      fail_with(current_exception_status());
    }
  }
  if (has_failed_) {
    if (running_ > 0) return std::nullopt;
    ready_.clear();
    ready_.emplace_back();
    ready_.back().status =
        absl::Status(status_.code(), concat("in ensemble '", context_.name, "', ", status_.message()));
  } else if (!root_ && ready_.empty()) {
    ready_.emplace_back();
    ready_.back().is_empty = true;
  }
  if (ready_.empty()) return std::nullopt;
  Answer answer{.result = std::move(ready_.front()), .spent = times()};
  ready_.pop_front();
  answer.is_final = has_failed_ || (!root_ && ready_.empty());
  is_over_ = answer.is_final;
  // A failure counts in the step where it happened, so it has no failure reason here.
  answer.result.times = answer.result.status.ok() ? answer.spent : RequestTimes{.arrived_ns = request_.arrived_ns};
  return answer;
}

void EnsembleRun::give(Answer answer) {
  if (answer.is_final) {
    context_.metrics.count_execution(request_.batch_size, answer.spent, answer.result.status.ok());
  }
  sink_.respond(std::move(answer.result), answer.is_final);
}

InferResult EnsembleRun::take_result(Branch& branch) {
  InferResult result;
  const EnsemblePlan& plan = context_.plan;
  for (const size_t tensor : wanted_) {
    InferTensor& output = result.outputs.emplace_back(take_tensor(branch, tensor));
    output.name = plan.tensors[tensor];
    const auto place =
        static_cast<size_t>(std::find(plan.outputs.begin(), plan.outputs.end(), tensor) - plan.outputs.begin());
    fit_batch(output, plan.output_fits[place]);
    const TensorSpec& spec = plan.signature.outputs[place];
    if (spec.reshape && spec.shape) reshape(output, *spec.reshape, *spec.shape);
  }
  result.parameters = std::move(branch.parameters);
  add_sequence(request_, result.parameters);
  return result;
}

void EnsembleRun::add_times(const RequestTimes& step) {
  if (step.compute_end_ns == 0) return;
  input_ns_ += step.compute_input_end_ns - step.compute_start_ns;
  output_ns_ += step.compute_end_ns - step.compute_output_start_ns;
}

// Queueing in steps counts as the ensemble's compute time: it does nothing else between its first and its last step.
RequestTimes EnsembleRun::times() const {
  const int64_t now = Clock::system().now_ns();
  const int64_t input_ns = std::min(input_ns_, now - start_ns_);
  const int64_t output_ns = std::min(output_ns_, now - start_ns_ - input_ns);
  return {.arrived_ns = request_.arrived_ns,
          .queue_start_ns = start_ns_,
          .compute_start_ns = start_ns_,
          .compute_input_end_ns = start_ns_ + input_ns,
          .compute_output_start_ns = now - output_ns,
          .compute_end_ns = now};
}

}  // namespace tensord::server
