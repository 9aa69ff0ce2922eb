#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/nn/optim/optimizer.h"

// Learning rate schedules, with PyTorch's values. A schedule sets "lr" of every group of its optimizer at construction
// and with every step(). Call step() after the optimizer's step, by epoch or by batch. Several schedules may work on
// one optimizer, since most multiply the current rate. The optimizer must outlive its schedules. Not thread-safe.
namespace tensord::nn {

class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  virtual void step();
  // By group, as last set by this schedule.
  const std::vector<double>& last_lr() const { return last_lr_; }
  int64_t last_epoch() const { return last_epoch_; }
  Optimizer& optimizer() const { return optimizer_; }

  // A dict of numbers and lists of them. The learning rates themselves are in the optimizer's state: save and load
  // both. Constructor arguments are not saved; load into a schedule with the same ones.
  virtual ops::Value state_dict() const;
  virtual void load_state_dict(const ops::Value& state);

 protected:
  friend class SequentialLR;
  // Derived classes call initial_step() at the end of their constructors.
  explicit LRScheduler(Optimizer& optimizer);
  void initial_step();
  // Steps to epoch 0 again, by the closed form.
  virtual void restart();
  // The learning rate of a group at last_epoch_, computed from its current one.
  virtual double next_lr(size_t group) = 0;
  // The same from the base rate only, if there is such a formula; used by a restart.
  virtual double closed_form_lr(size_t group) { return next_lr(group); }
  void set_lrs(const std::function<double(size_t group)>& lr_of);
  double current_lr(size_t group) const;

  Optimizer& optimizer_;
  std::vector<double> base_lrs_, last_lr_;
  int64_t last_epoch_ = -1;
  int64_t step_count_ = 0;
};

// base · function(epoch); one function for all groups, or one for each.
class LambdaLR final : public LRScheduler {
 public:
  using Lambda = std::function<double(int64_t epoch)>;
  LambdaLR(Optimizer& optimizer, Lambda lambda);
  LambdaLR(Optimizer& optimizer, std::vector<Lambda> lambdas);

 private:
  double next_lr(size_t group) override;
  std::vector<Lambda> lambdas_;
};

// Multiplies by gamma every step_size epochs.
class StepLR final : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);

 private:
  double next_lr(size_t group) override;
  double closed_form_lr(size_t group) override;
  const int64_t step_size_;
  const double gamma_;
};

// Multiplies by gamma at each milestone; a milestone listed twice counts twice.
class MultiStepLR final : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1);

 private:
  double next_lr(size_t group) override;
  double closed_form_lr(size_t group) override;
  std::vector<int64_t> milestones_;
  const double gamma_;
};

class ExponentialLR final : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 private:
  double next_lr(size_t group) override;
  double closed_form_lr(size_t group) override;
  const double gamma_;
};

// base · factor until total_iters, then base.
class ConstantLR final : public LRScheduler {
 public:
  explicit ConstantLR(Optimizer& optimizer, double factor = 1.0 / 3, int64_t total_iters = 5);

 private:
  double next_lr(size_t group) override;
  double closed_form_lr(size_t group) override;
  const double factor_;
  const int64_t total_iters_;
};

// From base · start_factor to base · end_factor in total_iters even steps: a warm-up.
class LinearLR final : public LRScheduler {
 public:
  explicit LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1.0,
                    int64_t total_iters = 5);

 private:
  double next_lr(size_t group) override;
  double closed_form_lr(size_t group) override;
  const double start_factor_, end_factor_;
  const int64_t total_iters_;
};

class PolynomialLR final : public LRScheduler {
 public:
  explicit PolynomialLR(Optimizer& optimizer, int64_t total_iters = 5, double power = 1.0);

 private:
  double next_lr(size_t group) override;
  double closed_form_lr(size_t group) override;
  const int64_t total_iters_;
  const double power_;
};

// Half a cosine from base to eta_min in t_max epochs, and back.
class CosineAnnealingLR final : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min = 0);

 private:
  double next_lr(size_t group) override;
  double closed_form_lr(size_t group) override;
  const int64_t t_max_;
  const double eta_min_;
};

// The same, restarted at base after t_0, t_0 · t_mult, … epochs.
class CosineAnnealingWarmRestarts final : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t t_0, int64_t t_mult = 1, double eta_min = 0);
  void step() override;
  ops::Value state_dict() const override;
  void load_state_dict(const ops::Value& state) override;

 private:
  void restart() override;
  double next_lr(size_t group) override;
  const int64_t t_0_, t_mult_;
  const double eta_min_;
  int64_t t_i_, t_cur_;
};

struct OneCycleOptions {
  std::vector<double> max_lr = {};  // one for all groups, or one for each
  int64_t total_steps = 0;          // 0: epochs · steps_per_epoch
  int64_t epochs = 0, steps_per_epoch = 0;
  double pct_start = 0.3;      // fraction of the steps in which lr rises
  bool is_linear = false;      // anneal linearly instead of by cosine
  bool cycle_momentum = true;  // "momentum" or the first of "betas" falls while lr rises
  double base_momentum = 0.85, max_momentum = 0.95;
  double div_factor = 25;         // first lr = max_lr / div_factor
  double final_div_factor = 1e4;  // last lr = first lr / final_div_factor
  bool three_phase = false;
};

// One rise and fall of lr over a known number of steps (Smith, "Super-Convergence", 2018). step() is called after every
// batch; one call too many is an Error.
class OneCycleLR final : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, OneCycleOptions options);

 private:
  double next_lr(size_t group) override;
  double annealed(double start, double end, double part) const;
  void set_momentum(Options& options, double momentum) const;
  OneCycleOptions options_;
  bool uses_betas_ = false;
};

// Runs schedules in sequence: the i-th starts at milestones[i - 1].
class SequentialLR final : public LRScheduler {
 public:
  SequentialLR(Optimizer& optimizer, std::vector<std::unique_ptr<LRScheduler>> schedulers,
               std::vector<int64_t> milestones);
  void step() override;
  ops::Value state_dict() const override;
  void load_state_dict(const ops::Value& state) override;

 private:
  double next_lr(size_t group) override;
  std::vector<std::unique_ptr<LRScheduler>> schedulers_;
  const std::vector<int64_t> milestones_;
};

struct PlateauOptions {
  bool maximize = false;  // larger values of the metric are better
  double factor = 0.1;
  int64_t patience = 10;  // epochs without improvement before a reduction
  double threshold = 1e-4;
  bool is_threshold_relative = true;
  int64_t cooldown = 0;  // epochs after a reduction during which bad epochs are not counted
  double min_lr = 0;
  double eps = 1e-8;  // smaller changes of lr are skipped
};

// Multiplies by factor when a metric has stopped improving. Not an LRScheduler: its step takes the metric.
class ReduceLROnPlateau final {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& options = {});
  void step(double metric);
  std::vector<double> last_lr() const;
  ops::Value state_dict() const;
  void load_state_dict(const ops::Value& state);

 private:
  bool is_better(double metric) const;
  Optimizer& optimizer_;
  const PlateauOptions options_;
  double best_;
  int64_t bad_epochs_ = 0, cooldown_left_ = 0, last_epoch_ = 0;
};

}  // namespace tensord::nn
