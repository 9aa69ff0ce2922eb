#include "core/nn/optim/lr_scheduler.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/nn/state.h"

// Where PyTorch's formulas start from the rate of the previous step, so do these: schedules can be combined, and a
// hundred steps round the same way.
namespace tensord::nn {

using ops::Value;

LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {
  for (ParamGroup& group : optimizer.param_groups()) {
    if (!group.options.has("initial_lr")) group.options.set("initial_lr", group.options.number("lr"));
    base_lrs_.push_back(group.options.number("initial_lr"));
  }
}

void LRScheduler::initial_step() {
  step_count_ = 0;
  step();
}

double LRScheduler::current_lr(size_t group) const { return optimizer_.param_groups()[group].options.number("lr"); }

void LRScheduler::set_lrs(const std::function<double(size_t group)>& lr_of) {
  auto& groups = optimizer_.param_groups();
  check(groups.size() == base_lrs_.size(), "the optimizer got ", groups.size() - base_lrs_.size(),
        " parameter groups since the schedule was made");
  std::vector<double> lrs;
  for (size_t i = 0; i < groups.size(); ++i) lrs.push_back(lr_of(i));
  for (size_t i = 0; i < groups.size(); ++i) groups[i].options.set("lr", lrs[i]);
  last_lr_ = std::move(lrs);
}

void LRScheduler::step() {
  ++step_count_;
  ++last_epoch_;
  set_lrs([this](size_t group) { return next_lr(group); });
}

void LRScheduler::restart() {
  ++step_count_;
  last_epoch_ = 0;
  set_lrs([this](size_t group) { return closed_form_lr(group); });
}

Value LRScheduler::state_dict() const {
  const ops::Dict state = new_state();
  set_item(state, "base_lrs", numbers_value(base_lrs_));
  set_item(state, "last_epoch", last_epoch_);
  set_item(state, "_step_count", step_count_);
  set_item(state, "_last_lr", numbers_value(last_lr_));
  return Value(state);
}

void LRScheduler::load_state_dict(const Value& state) {
  const ops::DictObject& dict = as_dict(state, "schedule");
  auto base_lrs = get_numbers(dict, "base_lrs");
  check(base_lrs.size() == base_lrs_.size(), "the schedule's state is of ", base_lrs.size(),
        " parameter groups, but the optimizer has ", base_lrs_.size());
  auto last_lr = get_numbers(dict, "_last_lr");
  const int64_t last_epoch = get_integer(dict, "last_epoch");
  step_count_ = get_integer(dict, "_step_count");
  last_epoch_ = last_epoch;
  base_lrs_ = std::move(base_lrs);
  last_lr_ = std::move(last_lr);
}

LambdaLR::LambdaLR(Optimizer& optimizer, Lambda lambda)
    : LambdaLR(optimizer, std::vector<Lambda>(optimizer.param_groups().size(), std::move(lambda))) {}
LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<Lambda> lambdas)
    : LRScheduler(optimizer), lambdas_(std::move(lambdas)) {
  check(lambdas_.size() == base_lrs_.size(), "Expected ", base_lrs_.size(), " lr_lambdas, but got ", lambdas_.size());
  initial_step();
}
double LambdaLR::next_lr(size_t group) { return base_lrs_[group] * lambdas_[group](last_epoch_); }

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  check(step_size > 0, "Expected positive step_size, but got ", step_size);
  initial_step();
}
double StepLR::next_lr(size_t group) {
  const bool changes = last_epoch_ != 0 && last_epoch_ % step_size_ == 0;
  return changes ? current_lr(group) * gamma_ : current_lr(group);
}
double StepLR::closed_form_lr(size_t group) {
  return base_lrs_[group] * std::pow(gamma_, static_cast<double>(last_epoch_ / step_size_));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma)
    : LRScheduler(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  std::sort(milestones_.begin(), milestones_.end());
  initial_step();
}
double MultiStepLR::next_lr(size_t group) {
  const auto times = std::count(milestones_.begin(), milestones_.end(), last_epoch_);
  return times == 0 ? current_lr(group) : current_lr(group) * std::pow(gamma_, static_cast<double>(times));
}
double MultiStepLR::closed_form_lr(size_t group) {
  const auto passed = std::upper_bound(milestones_.begin(), milestones_.end(), last_epoch_) - milestones_.begin();
  return base_lrs_[group] * std::pow(gamma_, static_cast<double>(passed));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma) : LRScheduler(optimizer), gamma_(gamma) {
  initial_step();
}
double ExponentialLR::next_lr(size_t group) {
  return last_epoch_ == 0 ? current_lr(group) : current_lr(group) * gamma_;
}
double ExponentialLR::closed_form_lr(size_t group) {
  return base_lrs_[group] * std::pow(gamma_, static_cast<double>(last_epoch_));
}

ConstantLR::ConstantLR(Optimizer& optimizer, double factor, int64_t total_iters)
    : LRScheduler(optimizer), factor_(factor), total_iters_(total_iters) {
  check(factor > 0 && factor <= 1, "Constant multiplicative factor expected to be between 0 and 1.");
  initial_step();
}
double ConstantLR::next_lr(size_t group) {
  if (last_epoch_ == 0) return current_lr(group) * factor_;
  return last_epoch_ == total_iters_ ? current_lr(group) * (1.0 / factor_) : current_lr(group);
}
double ConstantLR::closed_form_lr(size_t group) {
  return base_lrs_[group] * (last_epoch_ >= total_iters_ ? 1.0 : factor_);
}

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor, int64_t total_iters)
    : LRScheduler(optimizer), start_factor_(start_factor), end_factor_(end_factor), total_iters_(total_iters) {
  check(start_factor > 0 && start_factor <= 1, "Starting multiplicative factor expected to be between 0 and 1.");
  check(end_factor >= 0 && end_factor <= 1, "Ending multiplicative factor expected to be between 0 and 1.");
  check(total_iters > 0, "Expected positive total_iters, but got ", total_iters);
  initial_step();
}
double LinearLR::next_lr(size_t group) {
  if (last_epoch_ == 0) return current_lr(group) * start_factor_;
  if (last_epoch_ > total_iters_) return current_lr(group);
  const double rise = end_factor_ - start_factor_;
  const double before = static_cast<double>(total_iters_) * start_factor_ + static_cast<double>(last_epoch_ - 1) * rise;
  return current_lr(group) * (1.0 + rise / before);
}
double LinearLR::closed_form_lr(size_t group) {
  const double part = static_cast<double>(std::min(total_iters_, last_epoch_)) / static_cast<double>(total_iters_);
  return base_lrs_[group] * (start_factor_ + (end_factor_ - start_factor_) * part);
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, int64_t total_iters, double power)
    : LRScheduler(optimizer), total_iters_(total_iters), power_(power) {
  check(total_iters > 0, "Expected positive total_iters, but got ", total_iters);
  initial_step();
}
double PolynomialLR::next_lr(size_t group) {
  if (last_epoch_ == 0 || last_epoch_ > total_iters_) return current_lr(group);
  const auto total = static_cast<double>(total_iters_), epoch = static_cast<double>(last_epoch_);
  return current_lr(group) * std::pow((1.0 - epoch / total) / (1.0 - (epoch - 1) / total), power_);
}
double PolynomialLR::closed_form_lr(size_t group) {
  const double part = static_cast<double>(std::min(total_iters_, last_epoch_)) / static_cast<double>(total_iters_);
  return base_lrs_[group] * std::pow(1.0 - part, power_);
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min)
    : LRScheduler(optimizer), t_max_(t_max), eta_min_(eta_min) {
  check(t_max > 0, "Expected positive T_max, but got ", t_max);
  initial_step();
}
double CosineAnnealingLR::next_lr(size_t group) {
  if (last_epoch_ == 0) return current_lr(group);
  if (step_count_ == 1) return closed_form_lr(group);
  const auto total = static_cast<double>(t_max_), epoch = static_cast<double>(last_epoch_);
  // At the minimum the quotient below would divide by zero.
  if ((last_epoch_ - 1 - t_max_) % (2 * t_max_) == 0) {
    return current_lr(group) + (base_lrs_[group] - eta_min_) * (1 - std::cos(M_PI / total)) / 2;
  }
  return (1 + std::cos(M_PI * epoch / total)) / (1 + std::cos(M_PI * (epoch - 1) / total)) *
             (current_lr(group) - eta_min_) +
         eta_min_;
}
double CosineAnnealingLR::closed_form_lr(size_t group) {
  const double angle = M_PI * static_cast<double>(last_epoch_) / static_cast<double>(t_max_);
  return eta_min_ + (base_lrs_[group] - eta_min_) * (1 + std::cos(angle)) / 2;
}

}  // namespace tensord::nn
