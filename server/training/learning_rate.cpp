#include "server/training/learning_rate.h"

#include <algorithm>

#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "server/training/jobs/optimizer_checks.h"
#include "server/training/value_dict.h"

namespace tensord::server {
namespace {

using ops::Value;

std::unique_ptr<nn::LRScheduler> make_schedule(const ScheduleSpec& spec, nn::Optimizer& optimizer, int64_t length) {
  const std::string& name = spec.name;
  if (name == "step") return std::make_unique<nn::StepLR>(optimizer, spec.step_size, spec.gamma.value_or(0.1));
  if (name == "multi_step") {
    return std::make_unique<nn::MultiStepLR>(optimizer, spec.milestones, spec.gamma.value_or(0.1));
  }
  if (name == "exponential") return std::make_unique<nn::ExponentialLR>(optimizer, spec.gamma.value_or(0.95));
  if (name == "cosine") return std::make_unique<nn::CosineAnnealingLR>(optimizer, length, spec.min_lr);
  if (name == "linear") return std::make_unique<nn::LinearLR>(optimizer, 1.0, spec.end_factor.value_or(0.0), length);
  if (name != "one_cycle") return nullptr;
  nn::OneCycleOptions options;
  if (spec.max_lr) {
    options.max_lr = {*spec.max_lr};
  } else {
    for (const nn::ParamGroup& group : optimizer.param_groups()) options.max_lr.push_back(group.options.number("lr"));
  }
  options.total_steps = length;
  options.pct_start = spec.pct_start.value_or(0.3);
  const nn::Options& values = optimizer.param_groups().front().options;
  options.cycle_momentum = values.has("momentum") || values.has("betas");
  return std::make_unique<nn::OneCycleLR>(optimizer, std::move(options));
}

int64_t length_of(const ScheduleSpec& spec, int64_t total_steps, int64_t total_epochs) {
  if (spec.t_max > 0) return spec.t_max;
  if (spec.by_epoch) return total_epochs;
  return spec.name == "one_cycle" ? total_steps : std::max<int64_t>(total_steps - spec.warmup_steps, 1);
}

bool is_half(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

}  // namespace

std::unique_ptr<nn::Optimizer> make_job_optimizer(const OptimizerSpec& spec,
                                                  const std::vector<std::pair<std::string, Tensor>>& parameters) {
  const nn::OptimizerInfo& info = optimizer_of(spec);
  std::vector<nn::ParamGroup> groups(spec.groups.size() + 1);  // the last group has the remaining parameters
  std::vector<bool> is_matched(spec.groups.size(), false);
  for (const auto& [name, tensor] : parameters) {
    size_t index = 0;
    while (index < spec.groups.size() && !matches_pattern(name, spec.groups[index].pattern)) ++index;
    if (index < spec.groups.size()) is_matched[index] = true;
    if (index < spec.groups.size() && spec.groups[index].freeze) {
      autograd::set_requires_grad(tensor, false);
    } else if (autograd::requires_grad(tensor)) {
      groups[index].params.push_back(tensor);
    }
  }
  for (size_t i = 0; i < spec.groups.size(); ++i) {
    check(is_matched[i], "optimizer.groups.pattern: '", spec.groups[i].pattern,
          "' matches no parameter that a group before it has not");
    groups[i].options = info.to_options(spec.groups[i].options);
  }
  std::erase_if(groups, [](const nn::ParamGroup& group) { return group.params.empty(); });
  if (groups.empty()) {
    fail(ErrorCode::kFailedPrecondition, "no parameter of the model requires a gradient: there is nothing to train");
  }
  const bool has_halves = std::ranges::any_of(groups, [](const nn::ParamGroup& group) {
    return std::ranges::any_of(group.params, [](const Tensor& param) { return is_half(param.dtype()); });
  });
  auto optimizer = info.make(std::move(groups), info.to_options(spec.options));
  // Small updates would be lost in the rounding of 16-bit weights.
  if (has_halves) optimizer->use_master_weights();
  return optimizer;
}

LearningRate::LearningRate(const ScheduleSpec& spec, nn::Optimizer& optimizer, int64_t total_steps,
                           int64_t total_epochs)
    : spec_(spec), optimizer_(optimizer), length_(length_of(spec, total_steps, total_epochs)) {
  if (spec.name == "plateau") {
    nn::PlateauOptions options;
    options.maximize = is_more_better(spec.metric);
    options.factor = spec.factor.value_or(0.1);
    options.patience = spec.patience.value_or(10);
    options.min_lr = spec.min_lr;
    plateau_ = std::make_unique<nn::ReduceLROnPlateau>(optimizer, options);
  } else {
    schedule_ = make_schedule(spec, optimizer, length_);
  }
  if (spec.warmup_steps > 0) {
    warmup_ = std::make_unique<nn::LinearLR>(optimizer, spec.warmup_factor.value_or(0.01), 1.0, spec.warmup_steps);
  }
}

void LearningRate::step_schedule() {
  // one_cycle and cosine end after their length; other schedules have no end or stay constant by themselves.
  const bool has_end = spec_.name == "one_cycle" || spec_.name == "cosine";
  if (!schedule_ || (has_end && schedule_steps_ + (spec_.name == "one_cycle") >= length_)) return;
  ++schedule_steps_;
  schedule_->step();
}

void LearningRate::after_step() {
  ++steps_;
  if (warmup_ && steps_ <= spec_.warmup_steps) {
    warmup_->step();
  } else if (!spec_.by_epoch) {
    step_schedule();
  }
}

void LearningRate::after_epoch() {
  if (spec_.by_epoch) step_schedule();
}

void LearningRate::after_evaluation(const std::map<std::string, double>& metrics) {
  const auto found = metrics.find(spec_.metric);
  if (plateau_ && found != metrics.end()) plateau_->step(found->second);
}

double LearningRate::current() const { return optimizer_.param_groups().front().options.number("lr"); }

Value LearningRate::state_dict() const {
  ValueDict dict;
  dict.set("steps", steps_);
  dict.set("schedule_steps", schedule_steps_);
  if (schedule_) dict.set("schedule", schedule_->state_dict());
  if (warmup_) dict.set("warmup", warmup_->state_dict());
  if (plateau_) dict.set("plateau", plateau_->state_dict());
  return dict.value();
}

void LearningRate::load_state_dict(const Value& state) {
  const ValueDict dict(state);
  steps_ = dict.at("steps").to_int();
  schedule_steps_ = dict.at("schedule_steps").to_int();
  if (schedule_) schedule_->load_state_dict(dict.at("schedule"));
  if (warmup_) warmup_->load_state_dict(dict.at("warmup"));
  if (plateau_) plateau_->load_state_dict(dict.at("plateau"));
}

}  // namespace tensord::server
