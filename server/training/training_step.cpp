#include "server/training/training_step.h"

#include <cmath>
#include <optional>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/jit/runtime/step/module_step.h"
#include "core/nn/optim/clip_grad.h"
#include "ops/pointwise.h"
#include "server/training/jobs/optimizer_checks.h"
#include "server/training/non_finite.h"

namespace tensord::server {

TrainingStep::TrainingStep(Parts parts, std::vector<std::pair<std::string, Tensor>> parameters)
    : parts_(std::move(parts)),
      parameters_(std::move(parameters)),
      needs_closure_(optimizer_of(parts_.spec.optimizer).needs_closure) {
  for (const auto& [name, tensor] : parameters_) tensors_.push_back(tensor);
  jit::PlannedStepOptions options;
  options.is_enabled = parts_.plans != "off";
  options.keeps_bits = parts_.plans != "fused";
  options.unsupported_reason = unsupported_plan_reason();
  planned_ = jit::make_planned_step(parts_.model.module(), parts_.model.methods_of_loss(), std::move(options));
}

std::string TrainingStep::unsupported_plan_reason() const {
  if (parts_.ranks) return "the job has several processes";
  if (parts_.loss_scale) return "the loss is scaled";
  if (parts_.spec.accumulation > 1) return "a step adds the gradients of several batches";
  if (!parts_.model.device().is_host()) return concat("the job trains on ", to_string(parts_.model.device()));
  return needs_closure_ ? "the optimizer computes the loss as often as it likes" : "";
}

TrainingStep::Done TrainingStep::run(std::span<const std::vector<Tensor>> batches, int64_t rows, bool wants_norm) {
  Done done{.loss = NAN, .plan_reason = {}};
  if (needs_closure_) {
    parts_.optimizer.step([&] {
      const Tensor loss = compute_gradients(batches, rows, wants_norm, done);
      if (std::isnan(done.loss)) done.loss = loss.item_double();  // the first evaluation, before any update
      return loss;
    });
    say_plan(done);
    return done;
  }
  done.loss = compute_gradients(batches, rows, wants_norm, done).item_double();
  say_plan(done);
  if (done.is_skipped) {
    // The ranks agree on it, see clip().
  } else if (parts_.zero) {
    parts_.zero->step();
  } else {
    parts_.optimizer.step();
  }
  if (!parts_.ranks) return done;
  const RankGroup::Agreed agreed = parts_.ranks->agreed();
  done.loss = agreed.loss;
  done.request = agreed.request;
  done.checkpoint_is_due = agreed.checkpoint_is_due;
  return done;
}

void TrainingStep::say_plan(Done& done) const {
  const jit::PlannedStepReport& plan = planned_->report();
  done.is_planned = plan.is_planned;
  if (plan.is_settled && !plan.is_planned) done.plan_reason = plan.reason;
}

Tensor TrainingStep::accumulate_gradients(std::span<const std::vector<Tensor>> batches, int64_t rows) {
  double mean = 0;
  for (const std::vector<Tensor>& batch : batches) {
    const double share = static_cast<double>(batch.front().size(0)) / static_cast<double>(rows);
    const Tensor loss = loss_of(batch);
    mean += loss.item_double() * share;
    autograd::backward(ops::mul(loss, share * scale()));
  }
  return Tensor::scalar(mean, DType::kFloat64);
}

Tensor TrainingStep::compute_gradients(std::span<const std::vector<Tensor>> batches, int64_t rows, bool wants_norm,
                                       Done& done) {
  parts_.optimizer.zero_grad();
  if (parts_.spec.accumulation > 1) {
    const Tensor loss = accumulate_gradients(batches, rows);
    clip(loss, wants_norm, done);
    return loss;
  }
  const std::span<const Tensor> batch = batches.front();
  if (parts_.ranks) parts_.ranks->share_buffers(parts_.model.module());
  std::optional<StatisticsGroups::Pass> statistics;
  if (parts_.statistics) statistics.emplace(*parts_.statistics, rows);
  const int64_t own_rows = batch.empty() ? 0 : batch.front().size(0);
  const bool is_idle = parts_.ranks && own_rows == 0;
  // The first step runs unplanned to inspect the model's outputs.
  if (!parts_.ranks && !parts_.loss_scale && !std::exchange(is_first_, false)) {
    const Tensor loss = run_planned(batch);
    clip(loss, wants_norm, done);
    return loss;
  }
  const Tensor loss = is_idle ? Tensor() : loss_of(batch);
  backward(loss, own_rows, rows);
  statistics.reset();
  clip(loss, wants_norm, done);
  return is_idle ? Tensor::scalar(0.0, DType::kFloat64) : autograd::detach(loss);
}

Tensor TrainingStep::run_planned(std::span<const Tensor> batch) {
  return planned_->run(
      batch, [&] { return parts_.model.loss(batch, parts_.is_cancelled); },
      [&](const Tensor& loss) { check_loss(loss.item_double(), batch); },
      parts_.is_cancelled ? &parts_.is_cancelled : nullptr);
}

Tensor TrainingStep::loss_of(std::span<const Tensor> batch) {
  if (parts_.ranks && parts_.ranks->size() > 1) parts_.model.check_all_rows_count(batch);
  const Tensor loss = parts_.model.loss(batch, parts_.is_cancelled);
  check(autograd::requires_grad(loss), "the loss does not depend on any parameter that is trained");
  check_loss(loss.item_double(), batch);
  return loss;
}

void TrainingStep::backward(const Tensor& loss, int64_t own_rows, int64_t rows) {
  if (!parts_.ranks) {
    autograd::backward(parts_.loss_scale ? ops::mul(loss, scale()) : loss);
    return;
  }
  const double value = loss.defined() ? loss.item_double() : 0;
  parts_.ranks->tell(value, own_rows, rows, parts_.request(), parts_.is_checkpoint_due());
  const bool is_scaled = parts_.loss_scale && loss.defined();
  parts_.ranks->backward(is_scaled ? ops::mul(loss, scale()) : loss, own_rows, rows);
}

void TrainingStep::clip(const Tensor& loss, bool wants_norm, Done& done) {
  const ClippingSpec& clipping = parts_.spec.clipping;
  const double scale = this->scale();
  double& norm = done.gradient_norm;
  if (clipping.norm > 0) {
    norm = nn::clip_grad_norm_(tensors_, clipping.norm * scale) / scale;
  } else if (wants_norm || parts_.loss_scale) {
    norm = nn::grad_norm(tensors_) / scale;
  }
  if (parts_.loss_scale) {
    const bool is_finite = std::isfinite(norm) && (!loss.defined() || std::isfinite(loss.item_double()));
    done.is_skipped = !(parts_.ranks ? parts_.ranks->all_of(is_finite) : is_finite);
    parts_.optimizer.set_gradient_scale(scale);
    parts_.loss_scale->update(!done.is_skipped);
  }
  if (!std::isfinite(norm) && !done.is_skipped) {
    fail(ErrorCode::kFailedPrecondition, "the gradient is not finite, first that of parameter '",
         first_non_finite(parameters_, /*gradients=*/true), "'");
  }
  if (clipping.value > 0) nn::clip_grad_value_(tensors_, clipping.value * scale);
}

// Explains a non-finite loss: non-finite weights, non-finite data, or weights that have grown.
void TrainingStep::check_loss(double loss, std::span<const Tensor> batch) const {
  if (std::isfinite(loss)) return;
  const std::string what = std::isnan(loss) ? "the loss is not a number" : "the loss is infinite";
  const std::string parameter = first_non_finite(parameters_, /*gradients=*/false);
  if (!parameter.empty()) fail(ErrorCode::kFailedPrecondition, what, ": parameter '", parameter, "' is not finite");
  std::vector<std::pair<std::string, Tensor>> arrays;
  for (size_t i = 0; i < batch.size(); ++i) arrays.emplace_back(parts_.model.arrays()[i], batch[i]);
  const std::string array = first_non_finite(arrays, /*gradients=*/false);
  if (!array.empty())
    fail(ErrorCode::kInvalidArgument, what, ": '", array, "' of the data is not finite in this batch");
  // In float16 the activations of a batch may overflow.
  if (parts_.loss_scale && parts_.loss_scale->may_skip()) {
    const std::string buffer = first_non_finite(parts_.model.module().named_buffers(), /*gradients=*/false);
    if (!buffer.empty()) fail(ErrorCode::kFailedPrecondition, what, ", and buffer '", buffer, "' is not finite");
    return;
  }
  const auto [name, value] = largest(parameters_);
  if (parts_.loss_scale) {
    fail(ErrorCode::kFailedPrecondition, what,
         ", step after step, whatever it is multiplied by; the largest parameter is '", name, "', ", value);
  }
  fail(ErrorCode::kFailedPrecondition, what, ": parameter '", name, "' has grown to ", value);
}

}  // namespace tensord::server
