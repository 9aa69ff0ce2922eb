#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/ops/value.h"
#include "core/tensor/tensor.h"

namespace tensord::ops {
struct Op;
}

namespace tensord::nn {

// Options by PyTorch's names: numbers ("lr", "momentum"), flags ("nesterov"), and "betas", a tuple of two numbers.
class Options {
 public:
  using Item = std::pair<std::string, ops::Value>;
  Options() = default;
  Options(std::initializer_list<Item> items) : items_(items) {}

  const std::vector<Item>& items() const { return items_; }
  const ops::Value* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  void set(std::string_view name, ops::Value value);
  // Each throws Error{kInvalidArgument} naming the option that is missing or has another type.
  double number(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  bool flag(std::string_view name) const;
  std::pair<double, double> pair(std::string_view name) const;

 private:
  std::vector<Item> items_;
};

// Parameters that are updated with the same options.
struct ParamGroup {
  std::vector<Tensor> params;
  Options options;  // overrides of the optimizer's defaults; complete once the group was added
};

// Updates parameters (leaves, float32 or float64; float16 and bfloat16 with master weights) from their gradients, in
// place and outside of autograd. One step is one operator over all tensors of a group. Parameters without a gradient,
// and their states, are unchanged. Sparse gradients: SGD, Adagrad, LBFGS and SparseAdam support them; the others throw
// Error{kUnimplemented} before anything changes. Not thread-safe: a step does not synchronize with threads that read
// the parameters.
class Optimizer {
 public:
  // Recomputes the loss and its gradients; called with grad mode on.
  using Closure = std::function<Tensor()>;

  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Runs one update. Returns the closure's result; undefined without a closure.
  virtual Tensor step(const Closure& closure = {});
  // Drops the gradients of all parameters, or fills them with zeros.
  void zero_grad(bool set_to_none = true);

  // Options may be read and set between steps ("lr"); parameters can only be added with add_param_group.
  std::vector<ParamGroup>& param_groups() { return groups_; }
  const std::vector<ParamGroup>& param_groups() const { return groups_; }
  // Throws Error{kInvalidArgument} if a parameter is already in a group or is not a leaf, or if an option is unknown or
  // out of range.
  virtual void add_param_group(ParamGroup group);
  // From now on steps update only these parameters, and only their state is kept and loaded: for a process that shares
  // the work with others (ZeroRedundancy). Drops the state of the others.
  void keep_only(std::span<const Tensor> params);
  // From now on float16 and bfloat16 parameters have a float32 copy. Steps update the copy, with float32 states; the
  // parameter is the rounded copy. If the parameter is written between two steps, the copy follows. The copy is state
  // "master_param" of the state dict. Throws Error{kFailedPrecondition} after the first step.
  virtual void use_master_weights();
  // Later steps divide the gradients by this number, in float32 for parameters with master weights: for losses that
  // were multiplied by it. LBFGS does not take it.
  void set_gradient_scale(double scale) { gradient_scale_ = scale; }
  // Sets these options in every group.
  void set_options(const Options& options);
  // The options of groups without overrides.
  const Options& defaults() const { return defaults_; }
  // Sets these options for groups that are added later. Throws Error{kInvalidArgument} as add_param_group does.
  void set_defaults(const Options& options);

  // All state that later steps depend on, in PyTorch's format: {"state": {0: {"step": …, "exp_avg": …}, …},
  // "param_groups": [{"lr": …, "params": [0, 1]}]}. The tensors are the optimizer's own; save them before the next
  // step. torch.load and Optimizer.load_state_dict can read it, and the reverse.
  ops::Value state_dict() const;
  // Copies the tensors. Throws Error{kInvalidArgument} if the groups, their sizes or the tensors' shapes differ;
  // nothing is changed then.
  virtual void load_state_dict(const ops::Value& state);

 protected:
  // The type in which PyTorch's optimizer of this kind stores the number of steps.
  enum class StepKind { kNone, kInt, kTensor };
  // The state of one parameter.
  struct State {
    int64_t step = 0;
    std::vector<Tensor> tensors;              // by the optimizer's tensor names; undefined if unused
    Tensor master;                            // undefined: the parameter itself is updated
    std::optional<uint32_t> written_version;  // version of the parameter when it was last written from the master
  };
  // A parameter with its gradient and state.
  struct Update {
    Tensor param, grad;  // the master, if there is one, and the gradient of the parameter itself
    State* state;
    Tensor rounded =
        {};  // the 16-bit parameter, which becomes the rounded master; in one update() either all or none have one
  };

  // `step_op`: the operator of a step, whose kernels say which gradients the optimizer takes; "" if it takes all. A
  // refusal names the optimizer `instead` that takes them, if there is one.
  Optimizer(std::string kind, Options defaults, std::vector<const char*> tensor_names, StepKind step_kind,
            const char* step_op, const char* instead = nullptr);

  // Throws Error{kInvalidArgument} for values out of range.
  virtual void check_options(const Options& options) const = 0;
  // Updates parameters of a group whose gradients have one layout; their step counts are already incremented.
  virtual void update(const Options& options, std::span<const Update> updates);
  // State of all parameters together: a dict that is saved as state 0, or null.
  virtual ops::Dict save_extra() const { return {}; }
  virtual void load_extra(const ops::DictObject& states) { (void)states; }
  // Call it at the end of a derived class's constructor.
  void add_param_groups(std::vector<ParamGroup> groups);
  // Zeros with the parameter's strides.
  static Tensor zeros_for(const Tensor& param);

  const std::string kind_;  // "Adam", for messages
  std::vector<ParamGroup> groups_;
  std::unordered_map<const TensorImpl*, State> states_;

 private:
  struct GroupUpdates;
  GroupUpdates take_gradients(const ParamGroup& group);
  bool takes(const Tensor& gradient) const;
  void check_gradients() const;
  bool has_master(const Tensor& param) const {
    return has_masters_ && (param.dtype() == DType::kFloat16 || param.dtype() == DType::kBFloat16);
  }
  void follow(State& state, const Tensor& param) const;
  bool keeps(const Tensor& param) const { return !kept_ || kept_->contains(param.impl()); }
  Options merged(const Options& options) const;
  ops::Value save_state(const State& state) const;
  State load_state(const ops::DictObject& saved, const Tensor& param) const;
  Options load_options(const ops::DictObject& saved) const;

  Options defaults_;
  const std::vector<const char*> tensor_names_;
  const StepKind step_kind_;
  const ops::Op* const step_op_;  // null: takes all gradients
  const char* const instead_;
  bool has_masters_ = false;
  double gradient_scale_ = 1;
  std::optional<std::unordered_set<const TensorImpl*>> kept_;  // not set: all
};

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
};
struct AdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool maximize = false;
};
struct AdamWOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;  // applied to the parameters directly, not through the gradient
  bool amsgrad = false;
  bool maximize = false;
};
struct RMSpropOptions {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
  bool maximize = false;
};
struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
  bool maximize = false;
};
// Adam for sparse gradients only: rows that a gradient lacks stay unchanged, and so do their averages.
struct SparseAdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  bool maximize = false;
};
struct LBFGSOptions {
  double lr = 1;
  int64_t max_iter = 20;
  int64_t max_eval = 0;  // 0: max_iter * 5 / 4
  double tolerance_grad = 1e-7;
  double tolerance_change = 1e-9;
  int64_t history_size = 100;
  bool strong_wolfe = false;  // use the line search; otherwise steps of length lr
};

class SGD : public Optimizer {
 public:
  explicit SGD(std::vector<ParamGroup> groups, const SGDOptions& options = {});
  explicit SGD(std::vector<Tensor> params, const SGDOptions& options = {});

 protected:
  void check_options(const Options& options) const override;
  void update(const Options& options, std::span<const Update> updates) override;
};

class Adam : public Optimizer {
 public:
  explicit Adam(std::vector<ParamGroup> groups, const AdamOptions& options = {});
  explicit Adam(std::vector<Tensor> params, const AdamOptions& options = {});

 protected:
  Adam(const char* kind, std::vector<ParamGroup> groups, const AdamOptions& options, bool is_decoupled);
  void check_options(const Options& options) const override;
  void update(const Options& options, std::span<const Update> updates) override;

 private:
  const bool is_decoupled_;  // decoupled weight decay, as in AdamW
};

class AdamW : public Adam {
 public:
  explicit AdamW(std::vector<ParamGroup> groups, const AdamWOptions& options = {});
  explicit AdamW(std::vector<Tensor> params, const AdamWOptions& options = {});
};

class RMSprop : public Optimizer {
 public:
  explicit RMSprop(std::vector<ParamGroup> groups, const RMSpropOptions& options = {});
  explicit RMSprop(std::vector<Tensor> params, const RMSpropOptions& options = {});

 protected:
  void check_options(const Options& options) const override;
  void update(const Options& options, std::span<const Update> updates) override;
};

class Adagrad : public Optimizer {
 public:
  explicit Adagrad(std::vector<ParamGroup> groups, const AdagradOptions& options = {});
  explicit Adagrad(std::vector<Tensor> params, const AdagradOptions& options = {});

 protected:
  void check_options(const Options& options) const override;
  void update(const Options& options, std::span<const Update> updates) override;
};

class SparseAdam : public Optimizer {
 public:
  explicit SparseAdam(std::vector<ParamGroup> groups, const SparseAdamOptions& options = {});
  explicit SparseAdam(std::vector<Tensor> params, const SparseAdamOptions& options = {});

 protected:
  void check_options(const Options& options) const override;
  void update(const Options& options, std::span<const Update> updates) override;
};

// Limited-memory BFGS. One group only. A step needs a closure and calls it several times.
class LBFGS : public Optimizer {
 public:
  explicit LBFGS(std::vector<Tensor> params, const LBFGSOptions& options = {});
  ~LBFGS() override;
  Tensor step(const Closure& closure) override;
  void add_param_group(ParamGroup group) override;
  void use_master_weights() override;  // throws Error{kUnimplemented}: its history covers all parameters together

 protected:
  void check_options(const Options& options) const override;
  ops::Dict save_extra() const override;
  void load_extra(const ops::DictObject& states) override;

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

// "sgd", "adam", "adamw", "rmsprop", "adagrad", "sparseadam", "lbfgs" (case-insensitive), with these options overriding
// the defaults. Throws Error{kInvalidArgument} naming the unknown optimizer or option.
std::unique_ptr<Optimizer> make_optimizer(std::string_view kind, std::vector<ParamGroup> groups,
                                          const Options& options = {});

}  // namespace tensord::nn
