#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/nn/optim/optimizer_info.h"
#include "core/ops/run.h"
#include "ops/optim.h"

// Optimizers with per-parameter state: the states, and the call of their operator.
namespace tensord::nn {
namespace {

using ops::Value;

std::vector<ParamGroup> one_group(std::vector<Tensor> params) {
  check(!params.empty(), "optimizer got an empty parameter list");
  std::vector<ParamGroup> groups(1);
  groups.front().params = std::move(params);
  return groups;
}

Value betas_value(std::pair<double, double> betas) { return ops::make_tuple({betas.first, betas.second}); }

// Creates an optimizer whose defaults are overridden by `options`, in every group and in groups added later.
template <class O>
std::unique_ptr<Optimizer> make(std::vector<ParamGroup> groups, const Options& options) {
  for (ParamGroup& group : groups) {
    Options all = options;
    for (const auto& [name, value] : group.options.items()) all.set(name, value);
    group.options = std::move(all);
  }
  auto made = std::make_unique<O>(std::move(groups));
  made->set_defaults(options);
  return made;
}

// Options that several optimizers share, with the same range.
OptionInfo lr_info(double default_value) {
  return {
      .name = "lr", .default_value = default_value, .text = "learning rate", .error_text = "Invalid learning rate: "};
}
OptionInfo weight_decay_info(double default_value) {
  return {.name = "weight_decay",
          .default_value = default_value,
          .text = "weight decay",
          .error_text = "Invalid weight_decay value: "};
}
OptionInfo momentum_info(double default_value) {
  return {
      .name = "momentum", .default_value = default_value, .text = "momentum", .error_text = "Invalid momentum value: "};
}
OptionInfo eps_info(double default_value) {
  return {.name = "eps",
          .default_value = default_value,
          .text = "added to the divisor",
          .error_text = "Invalid epsilon value: "};
}
OptionInfo flag_info(const char* name, bool default_value, const char* text) {
  return {.name = name, .kind = OptionInfo::Kind::kFlag, .default_value = default_value ? 1.0 : 0.0, .text = text};
}
OptionInfo beta_info(int index, double default_value) {
  return {.name = concat("beta", index + 1),
          .default_value = default_value,
          .max = 1,
          .is_below_most = true,
          .text = index == 0 ? "decay of the gradients' mean" : "decay of their squares' mean",
          .error_text = concat("Invalid beta parameter at index ", index, ": "),
          .in_pair = "betas",
          .pair_index = index};
}

// Columns of a list of updates, as operator arguments.
template <class Update>
std::vector<Tensor> params_of(std::span<const Update> updates) {
  std::vector<Tensor> params;
  params.reserve(updates.size());
  for (const Update& update : updates) params.push_back(update.param);
  return params;
}
template <class Update>
std::vector<Tensor> grads_of(std::span<const Update> updates) {
  std::vector<Tensor> grads;
  grads.reserve(updates.size());
  for (const Update& update : updates) grads.push_back(update.grad);
  return grads;
}
// The 16-bit parameters that the updated masters are copies of; empty: there are no masters.
template <class Update>
std::vector<Tensor> rounded_of(std::span<const Update> updates) {
  std::vector<Tensor> rounded;
  for (const Update& update : updates) {
    if (update.rounded.defined()) rounded.push_back(update.rounded);
  }
  return rounded;
}
template <class Update>
Dims steps_of(std::span<const Update> updates) {
  Dims steps;
  for (const Update& update : updates) steps.push_back(update.state->step);
  return steps;
}
// State number `which`, created by `make` if missing.
template <class Update, class Make>
std::vector<Tensor> states_of(std::span<const Update> updates, size_t which, const Make& make) {
  std::vector<Tensor> states;
  states.reserve(updates.size());
  for (const Update& update : updates) {
    auto& tensors = update.state->tensors;
    if (tensors.size() <= which) tensors.resize(which + 1);
    if (!tensors[which].defined()) tensors[which] = make(update.param);
    states.push_back(tensors[which]);
  }
  return states;
}

}  // namespace

SGD::SGD(std::vector<ParamGroup> groups, const SGDOptions& options)
    : Optimizer("SGD",
                {{"lr", options.lr},
                 {"momentum", options.momentum},
                 {"dampening", options.dampening},
                 {"weight_decay", options.weight_decay},
                 {"nesterov", options.nesterov},
                 {"maximize", options.maximize}},
                {"momentum_buffer"}, StepKind::kNone, "tensord::sgd_step_") {
  add_param_groups(std::move(groups));
}
SGD::SGD(std::vector<Tensor> params, const SGDOptions& options) : SGD(one_group(std::move(params)), options) {}

const OptimizerInfo& sgd_info() {
  static const SGDOptions defaults;
  static const OptimizerInfo info{
      .name = "sgd",
      .options = {lr_info(defaults.lr),
                  weight_decay_info(defaults.weight_decay),
                  momentum_info(defaults.momentum),
                  {.name = "dampening", .default_value = defaults.dampening, .text = "dampening of the momentum"},
                  flag_info("nesterov", defaults.nesterov, "Nesterov's momentum")},
      .rules = {{"nesterov", "Nesterov momentum requires a momentum and zero dampening",
                 [](const Options& options) {
                   return !options.flag("nesterov") ||
                          (options.number("momentum") > 0 && options.number("dampening") == 0);
                 }}},
      .make = make<SGD>};
  return info;
}

void SGD::check_options(const Options& options) const {
  sgd_info().check(options);
  options.flag("maximize");
}

void SGD::update(const Options& options, std::span<const Update> updates) {
  const double momentum = options.number("momentum");
  const auto run = [&](std::span<const Update> part, bool has_buffers) {
    if (part.empty()) return;
    const auto buffers = has_buffers ? states_of(part, 0, zeros_for) : std::vector<Tensor>();
    std::vector<Tensor> made = ops::tensord_sgd_step_(
        params_of(part), grads_of(part), buffers, options.number("lr"), options.number("weight_decay"), momentum,
        options.number("dampening"), options.flag("nesterov"), options.flag("maximize"), rounded_of(part));
    for (size_t i = 0; i < made.size(); ++i) part[i].state->tensors = {std::move(made[i])};
  };
  // The operator makes missing buffers.
  std::vector<Update> first, later;
  for (const Update& update : updates) {
    const auto& tensors = update.state->tensors;
    (tensors.empty() || !tensors[0].defined() ? first : later).push_back(update);
  }
  run(first, false);
  run(later, momentum != 0);
}

Adam::Adam(const char* kind, std::vector<ParamGroup> groups, const AdamOptions& options, bool is_decoupled)
    : Optimizer(kind,
                {{"lr", options.lr},
                 {"betas", betas_value(options.betas)},
                 {"eps", options.eps},
                 {"weight_decay", options.weight_decay},
                 {"amsgrad", options.amsgrad},
                 {"maximize", options.maximize}},
                {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}, StepKind::kTensor, "tensord::adam_step_",
                is_decoupled ? nullptr : "SparseAdam"),
      is_decoupled_(is_decoupled) {
  add_param_groups(std::move(groups));
}
Adam::Adam(std::vector<ParamGroup> groups, const AdamOptions& options)
    : Adam("Adam", std::move(groups), options, false) {}
Adam::Adam(std::vector<Tensor> params, const AdamOptions& options) : Adam(one_group(std::move(params)), options) {}

AdamW::AdamW(std::vector<ParamGroup> groups, const AdamWOptions& options)
    : Adam("AdamW", std::move(groups),
           {options.lr, options.betas, options.eps, options.weight_decay, options.amsgrad, options.maximize}, true) {}
AdamW::AdamW(std::vector<Tensor> params, const AdamWOptions& options) : AdamW(one_group(std::move(params)), options) {}

namespace {

template <class Defaults>
std::vector<OptionInfo> adam_options(const Defaults& defaults) {
  return {lr_info(defaults.lr),
          weight_decay_info(defaults.weight_decay),
          beta_info(0, defaults.betas.first),
          beta_info(1, defaults.betas.second),
          eps_info(defaults.eps),
          flag_info("amsgrad", defaults.amsgrad, "divides by the maximum of the squares' means")};
}

}  // namespace

const OptimizerInfo& adam_info() {
  static const OptimizerInfo info{.name = "adam", .options = adam_options(AdamOptions()), .make = make<Adam>};
  return info;
}

const OptimizerInfo& adamw_info() {
  static const OptimizerInfo info{.name = "adamw", .options = adam_options(AdamWOptions()), .make = make<AdamW>};
  return info;
}

void Adam::check_options(const Options& options) const {
  (is_decoupled_ ? adamw_info() : adam_info()).check(options);
  options.flag("maximize");
}

void Adam::update(const Options& options, std::span<const Update> updates) {
  const auto [beta1, beta2] = options.pair("betas");
  const auto means = states_of(updates, 0, zeros_for), squares = states_of(updates, 1, zeros_for);
  const auto max = options.flag("amsgrad") ? states_of(updates, 2, zeros_for) : std::vector<Tensor>();
  ops::tensord_adam_step_(params_of(updates), grads_of(updates), means, squares, max, steps_of(updates),
                          options.number("lr"), beta1, beta2, options.number("eps"), options.number("weight_decay"),
                          is_decoupled_, options.flag("maximize"), rounded_of(updates));
}

RMSprop::RMSprop(std::vector<ParamGroup> groups, const RMSpropOptions& options)
    : Optimizer("RMSprop",
                {{"lr", options.lr},
                 {"momentum", options.momentum},
                 {"alpha", options.alpha},
                 {"eps", options.eps},
                 {"centered", options.centered},
                 {"weight_decay", options.weight_decay},
                 {"maximize", options.maximize}},
                {"square_avg", "momentum_buffer", "grad_avg"}, StepKind::kInt, "tensord::rmsprop_step_") {
  add_param_groups(std::move(groups));
}
RMSprop::RMSprop(std::vector<Tensor> params, const RMSpropOptions& options)
    : RMSprop(one_group(std::move(params)), options) {}

const OptimizerInfo& rmsprop_info() {
  static const RMSpropOptions defaults;
  static const OptimizerInfo info{.name = "rmsprop",
                                  .options = {lr_info(defaults.lr),
                                              weight_decay_info(defaults.weight_decay),
                                              momentum_info(defaults.momentum),
                                              eps_info(defaults.eps),
                                              {.name = "alpha",
                                               .default_value = defaults.alpha,
                                               .text = "decay of the squares' mean",
                                               .error_text = "Invalid alpha value: "},
                                              flag_info("centered", defaults.centered, "divides by the variance")},
                                  .make = make<RMSprop>};
  return info;
}

void RMSprop::check_options(const Options& options) const {
  rmsprop_info().check(options);
  options.flag("maximize");
}

void RMSprop::update(const Options& options, std::span<const Update> updates) {
  const double momentum = options.number("momentum");
  const auto squares = states_of(updates, 0, zeros_for);
  const auto buffers = momentum > 0 ? states_of(updates, 1, zeros_for) : std::vector<Tensor>();
  const auto means = options.flag("centered") ? states_of(updates, 2, zeros_for) : std::vector<Tensor>();
  ops::tensord_rmsprop_step_(params_of(updates), grads_of(updates), squares, buffers, means, options.number("lr"),
                             options.number("alpha"), options.number("eps"), options.number("weight_decay"), momentum,
                             options.flag("maximize"), rounded_of(updates));
}

Adagrad::Adagrad(std::vector<ParamGroup> groups, const AdagradOptions& options)
    : Optimizer("Adagrad",
                {{"lr", options.lr},
                 {"lr_decay", options.lr_decay},
                 {"eps", options.eps},
                 {"weight_decay", options.weight_decay},
                 {"initial_accumulator_value", options.initial_accumulator_value},
                 {"maximize", options.maximize}},
                {"sum"}, StepKind::kTensor, "tensord::adagrad_step_") {
  add_param_groups(std::move(groups));
}
Adagrad::Adagrad(std::vector<Tensor> params, const AdagradOptions& options)
    : Adagrad(one_group(std::move(params)), options) {}

const OptimizerInfo& adagrad_info() {
  static const AdagradOptions defaults;
  static const OptimizerInfo info{.name = "adagrad",
                                  .options = {lr_info(defaults.lr),
                                              weight_decay_info(defaults.weight_decay),
                                              eps_info(defaults.eps),
                                              {.name = "lr_decay",
                                               .default_value = defaults.lr_decay,
                                               .text = "decay of the rate with the steps",
                                               .error_text = "Invalid lr_decay value: "},
                                              {.name = "initial_accumulator_value",
                                               .default_value = defaults.initial_accumulator_value,
                                               .text = "initial value of the sum of squares",
                                               .error_text = "Invalid initial_accumulator_value value: "}},
                                  .make = make<Adagrad>};
  return info;
}

void Adagrad::check_options(const Options& options) const {
  adagrad_info().check(options);
  options.flag("maximize");
}

void Adagrad::update(const Options& options, std::span<const Update> updates) {
  const double start = options.number("initial_accumulator_value");
  const auto sums = states_of(updates, 0, [&](const Tensor& param) {
    const Tensor sum = zeros_for(param);
    if (start != 0) sum.copy_from(Tensor::scalar(start));
    return sum;
  });
  ops::tensord_adagrad_step_(params_of(updates), grads_of(updates), sums, steps_of(updates), options.number("lr"),
                             options.number("lr_decay"), options.number("weight_decay"), options.number("eps"),
                             options.flag("maximize"), rounded_of(updates));
}

SparseAdam::SparseAdam(std::vector<ParamGroup> groups, const SparseAdamOptions& options)
    : Optimizer("SparseAdam",
                {{"lr", options.lr},
                 {"betas", betas_value(options.betas)},
                 {"eps", options.eps},
                 {"maximize", options.maximize}},
                {"exp_avg", "exp_avg_sq"}, StepKind::kInt, "tensord::sparse_adam_step_", "Adam") {
  add_param_groups(std::move(groups));
}
SparseAdam::SparseAdam(std::vector<Tensor> params, const SparseAdamOptions& options)
    : SparseAdam(one_group(std::move(params)), options) {}

const OptimizerInfo& sparseadam_info() {
  static const SparseAdamOptions defaults;
  const auto above_zero = [](OptionInfo option) {
    option.is_above_least = true;
    return option;
  };
  static const OptimizerInfo info{.name = "sparseadam",
                                  .options = {above_zero(lr_info(defaults.lr)), beta_info(0, defaults.betas.first),
                                              beta_info(1, defaults.betas.second), above_zero(eps_info(defaults.eps))},
                                  .make = make<SparseAdam>};
  return info;
}

void SparseAdam::check_options(const Options& options) const {
  sparseadam_info().check(options);
  options.flag("maximize");
}

void SparseAdam::update(const Options& options, std::span<const Update> updates) {
  const auto [beta1, beta2] = options.pair("betas");
  const auto means = states_of(updates, 0, zeros_for), squares = states_of(updates, 1, zeros_for);
  ops::tensord_sparse_adam_step_(params_of(updates), grads_of(updates), means, squares, steps_of(updates),
                                 options.number("lr"), beta1, beta2, options.number("eps"), options.flag("maximize"),
                                 rounded_of(updates));
}

}  // namespace tensord::nn
