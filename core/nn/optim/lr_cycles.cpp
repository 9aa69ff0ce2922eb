#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/nn/optim/lr_scheduler.h"
#include "core/nn/state.h"

// Schedules with state or a shape of their own: restarts, one cycle, sequences, plateaus.
namespace tensord::nn {

using ops::Value;

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t t_0, int64_t t_mult,
                                                         double eta_min)
    : LRScheduler(optimizer), t_0_(t_0), t_mult_(t_mult), eta_min_(eta_min), t_i_(t_0), t_cur_(0) {
  check(t_0 > 0, "Expected positive integer T_0, but got ", t_0);
  check(t_mult >= 1, "Expected integer T_mult >= 1, but got ", t_mult);
  initial_step();
}

void CosineAnnealingWarmRestarts::step() {
  if (last_epoch_ < 0) {
    t_i_ = t_0_;
    t_cur_ = 0;
  } else if (++t_cur_ >= t_i_) {
    t_cur_ -= t_i_;
    t_i_ *= t_mult_;
  }
  LRScheduler::step();
}

void CosineAnnealingWarmRestarts::restart() {
  t_i_ = t_0_;
  t_cur_ = 0;
  LRScheduler::restart();
}

double CosineAnnealingWarmRestarts::next_lr(size_t group) {
  const double angle = M_PI * static_cast<double>(t_cur_) / static_cast<double>(t_i_);
  return eta_min_ + (base_lrs_[group] - eta_min_) * (1 + std::cos(angle)) / 2;
}

Value CosineAnnealingWarmRestarts::state_dict() const {
  const Value state = LRScheduler::state_dict();
  set_item(state.to_dict(), "T_i", t_i_);
  set_item(state.to_dict(), "T_cur", t_cur_);
  return state;
}

void CosineAnnealingWarmRestarts::load_state_dict(const Value& state) {
  const ops::DictObject& dict = as_dict(state, "schedule");
  const int64_t t_i = get_integer(dict, "T_i"), t_cur = get_integer(dict, "T_cur");
  check(t_i > 0, "\"T_i\": expected a positive integer but got ", t_i);
  LRScheduler::load_state_dict(state);
  t_i_ = t_i;
  t_cur_ = t_cur;
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, OneCycleOptions options)
    : LRScheduler(optimizer), options_(std::move(options)) {
  OneCycleOptions& o = options_;
  auto& groups = optimizer.param_groups();
  if (o.total_steps == 0) {
    check(o.epochs != 0 || o.steps_per_epoch != 0,
          "You must define either total_steps OR (epochs AND steps_per_epoch)");
    check(o.epochs > 0, "Expected positive integer epochs, but got ", o.epochs);
    check(o.steps_per_epoch > 0, "Expected positive integer steps_per_epoch, but got ", o.steps_per_epoch);
    o.total_steps = o.epochs * o.steps_per_epoch;
  }
  check(o.total_steps > 0, "Expected positive integer total_steps, but got ", o.total_steps);
  check(o.pct_start >= 0 && o.pct_start <= 1, "Expected float between 0 and 1 pct_start, but got ", o.pct_start);
  if (o.max_lr.size() == 1) o.max_lr.resize(groups.size(), o.max_lr.front());
  check(o.max_lr.size() == groups.size(), "expected ", groups.size(), " values for max_lr, got ", o.max_lr.size());
  uses_betas_ = optimizer.defaults().has("betas");
  check(!o.cycle_momentum || uses_betas_ || optimizer.defaults().has("momentum"),
        "optimizer must support momentum with `cycle_momentum` option enabled");
  for (size_t i = 0; i < groups.size(); ++i) {
    base_lrs_[i] = o.max_lr[i] / o.div_factor;
    Options& group = groups[i].options;
    group.set("initial_lr", base_lrs_[i]);
    group.set("max_lr", o.max_lr[i]);
    group.set("min_lr", base_lrs_[i] / o.final_div_factor);
    if (!o.cycle_momentum) continue;
    group.set("max_momentum", o.max_momentum);
    group.set("base_momentum", o.base_momentum);
  }
  initial_step();
}

double OneCycleLR::annealed(double start, double end, double part) const {
  if (options_.is_linear) return (end - start) * part + start;
  return end + (start - end) / 2.0 * (std::cos(M_PI * part) + 1);
}

void OneCycleLR::set_momentum(Options& options, double momentum) const {
  if (uses_betas_)
    options.set("betas", ops::make_tuple({momentum, options.pair("betas").second}));
  else
    options.set("momentum", momentum);
}

double OneCycleLR::next_lr(size_t group) {
  const OneCycleOptions& o = options_;
  const auto total = static_cast<double>(o.total_steps), step = static_cast<double>(last_epoch_);
  check(last_epoch_ <= o.total_steps, "Tried to step ", last_epoch_ + 1,
        " times. The specified number of total steps is ", o.total_steps);
  const double first = base_lrs_[group], max = o.max_lr[group], last = first / o.final_div_factor;
  struct Phase {
    double end, start_lr, end_lr, start_momentum, end_momentum;
  };
  const Phase rise{o.pct_start * total - 1, first, max, o.max_momentum, o.base_momentum};
  std::vector<Phase> phases{rise};
  if (o.three_phase) {
    phases.push_back({2 * o.pct_start * total - 2, max, first, o.base_momentum, o.max_momentum});
    phases.push_back({total - 1, first, last, o.max_momentum, o.max_momentum});
  } else {
    phases.push_back({total - 1, max, last, o.base_momentum, o.max_momentum});
  }
  double start = 0;
  size_t i = 0;
  for (; i + 1 < phases.size() && step > phases[i].end; ++i) start = phases[i].end;
  const Phase& phase = phases[i];
  const double length = phase.end - start;
  const double part = length > 0 ? (step - start) / length : 1;
  if (o.cycle_momentum) {
    set_momentum(optimizer_.param_groups()[group].options, annealed(phase.start_momentum, phase.end_momentum, part));
  }
  return annealed(phase.start_lr, phase.end_lr, part);
}

SequentialLR::SequentialLR(Optimizer& optimizer, std::vector<std::unique_ptr<LRScheduler>> schedulers,
                           std::vector<int64_t> milestones)
    : LRScheduler(optimizer), schedulers_(std::move(schedulers)), milestones_(std::move(milestones)) {
  check(!schedulers_.empty() && milestones_.size() == schedulers_.size() - 1,
        "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone "
        "points, but got number of schedulers ",
        schedulers_.size(), " and the number of milestones to be equal to ", milestones_.size());
  check(std::is_sorted(milestones_.begin(), milestones_.end()), "SequentialLR: milestones must not fall");
  for (const auto& scheduler : schedulers_) {
    check(&scheduler->optimizer() == &optimizer,
          "Sequential Schedulers expects all schedulers to belong to the same optimizer");
  }
  // The constructors have stepped each schedule: reset, then do the first step of the first one.
  for (ParamGroup& group : optimizer.param_groups()) {
    group.options.set("lr", group.options.number("initial_lr"));
  }
  for (const auto& scheduler : schedulers_) --scheduler->last_epoch_;
  schedulers_.front()->initial_step();
  last_epoch_ = 0;
  last_lr_ = schedulers_.front()->last_lr();
}

void SequentialLR::step() {
  ++last_epoch_;
  const auto passed = std::upper_bound(milestones_.begin(), milestones_.end(), last_epoch_) - milestones_.begin();
  const auto index = static_cast<size_t>(passed);
  LRScheduler& scheduler = *schedulers_[index];
  if (index > 0 && milestones_[index - 1] == last_epoch_)
    scheduler.restart();
  else
    scheduler.step();
  last_lr_ = scheduler.last_lr();
}

double SequentialLR::next_lr(size_t group) { return current_lr(group); }

Value SequentialLR::state_dict() const {
  const Value state = LRScheduler::state_dict();
  std::vector<Value> states;
  for (const auto& scheduler : schedulers_) states.push_back(scheduler->state_dict());
  set_item(state.to_dict(), "_schedulers",
           ops::make_list(ops::dict_type(ops::string_type(), ops::any_type()), std::move(states)));
  return state;
}

void SequentialLR::load_state_dict(const Value& state) {
  const auto& states = get_items(get_item(as_dict(state, "schedule"), "_schedulers"), "_schedulers");
  check(states.size() == schedulers_.size(), "the state is of ", states.size(), " schedules, but there are ",
        schedulers_.size());
  for (size_t i = 0; i < states.size(); ++i) schedulers_[i]->load_state_dict(states[i]);
  LRScheduler::load_state_dict(state);
}

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& options)
    : optimizer_(optimizer),
      options_(options),
      best_(options.maximize ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity()) {
  check(options.factor < 1.0, "Factor should be < 1.0.");
}

bool ReduceLROnPlateau::is_better(double metric) const {
  const double sign = options_.maximize ? 1 : -1;
  const double bound =
      options_.is_threshold_relative ? best_ * (1 + sign * options_.threshold) : best_ + sign * options_.threshold;
  return options_.maximize ? metric > bound : metric < bound;
}

void ReduceLROnPlateau::step(double metric) {
  ++last_epoch_;
  if (is_better(metric)) {
    best_ = metric;
    bad_epochs_ = 0;
  } else {
    ++bad_epochs_;
  }
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    bad_epochs_ = 0;
  }
  if (bad_epochs_ <= options_.patience) return;
  for (ParamGroup& group : optimizer_.param_groups()) {
    const double before = group.options.number("lr");
    const double after = std::max(before * options_.factor, options_.min_lr);
    if (before - after > options_.eps) group.options.set("lr", after);
  }
  cooldown_left_ = options_.cooldown;
  bad_epochs_ = 0;
}

std::vector<double> ReduceLROnPlateau::last_lr() const {
  std::vector<double> lrs;
  for (const ParamGroup& group : optimizer_.param_groups()) lrs.push_back(group.options.number("lr"));
  return lrs;
}

Value ReduceLROnPlateau::state_dict() const {
  const ops::Dict state = new_state();
  set_item(state, "best", best_);
  set_item(state, "num_bad_epochs", bad_epochs_);
  set_item(state, "cooldown_counter", cooldown_left_);
  set_item(state, "last_epoch", last_epoch_);
  return Value(state);
}

void ReduceLROnPlateau::load_state_dict(const Value& state) {
  const ops::DictObject& dict = as_dict(state, "schedule");
  const double best = get_number(dict, "best");
  const int64_t bad = get_integer(dict, "num_bad_epochs"), cooldown = get_integer(dict, "cooldown_counter");
  last_epoch_ = get_integer(dict, "last_epoch");
  best_ = best, bad_epochs_ = bad, cooldown_left_ = cooldown;
}

}  // namespace tensord::nn
