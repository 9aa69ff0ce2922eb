#include <algorithm>
#include <cctype>
#include <limits>
#include <string>

#include "core/base/error.h"
#include "core/nn/optimizer.h"
#include "core/ops/run.h"

// The optimisers that keep something of each parameter: what they keep, and the call of their operator.
namespace tensord::nn {
namespace {

using ops::OpRef;
using ops::Value;

std::vector<ParamGroup> one_group(std::vector<Tensor> params) {
  check(!params.empty(), "optimizer got an empty parameter list");
  std::vector<ParamGroup> groups(1);
  groups.front().params = std::move(params);
  return groups;
}

Value betas_value(std::pair<double, double> betas) { return ops::make_tuple({betas.first, betas.second}); }

void check_not_negative(const Options& options, const char* name, const char* text) {
  const double value = options.number(name);
  check(value >= 0, "Invalid ", text, ": ", value);
}

// Columns of a list of updates, for an operator.
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
template <class Update>
Dims steps_of(std::span<const Update> updates) {
  Dims steps;
  for (const Update& update : updates) steps.push_back(update.state->step);
  return steps;
}
// State `which`, made by `make` where it is not there yet.
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
                {"momentum_buffer"}, StepKind::kNone) {
  add_param_groups(std::move(groups));
}
SGD::SGD(std::vector<Tensor> params, const SGDOptions& options) : SGD(one_group(std::move(params)), options) {}

void SGD::check_options(const Options& options) const {
  check_not_negative(options, "lr", "learning rate");
  check_not_negative(options, "momentum", "momentum value");
  check_not_negative(options, "weight_decay", "weight_decay value");
  check(!options.flag("nesterov") || (options.number("momentum") > 0 && options.number("dampening") == 0),
        "Nesterov momentum requires a momentum and zero dampening");
  options.flag("maximize");
}

void SGD::update(const Options& options, std::span<const Update> updates) {
  static constexpr OpRef kStep("tensord::sgd_step_");
  const double momentum = options.number("momentum");
  const auto run = [&](std::span<const Update> part, bool is_first) {
    if (part.empty()) return;
    const auto buffers = momentum == 0 ? std::vector<Tensor>() : states_of(part, 0, zeros_for);
    kStep.call<void>(params_of(part), grads_of(part), buffers, options.number("lr"), options.number("weight_decay"),
                     momentum, options.number("dampening"), options.flag("nesterov"), options.flag("maximize"),
                     is_first);
  };
  // Buffers that are not there yet start as the gradient.
  std::vector<Update> first, later;
  for (const Update& update : updates) {
    const auto& tensors = update.state->tensors;
    (tensors.empty() || !tensors[0].defined() ? first : later).push_back(update);
  }
  run(first, true);
  run(later, false);
}

Adam::Adam(const char* kind, std::vector<ParamGroup> groups, const AdamOptions& options, bool is_decoupled)
    : Optimizer(kind,
                {{"lr", options.lr},
                 {"betas", betas_value(options.betas)},
                 {"eps", options.eps},
                 {"weight_decay", options.weight_decay},
                 {"amsgrad", options.amsgrad},
                 {"maximize", options.maximize}},
                {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}, StepKind::kTensor),
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

void Adam::check_options(const Options& options) const {
  check_not_negative(options, "lr", "learning rate");
  check_not_negative(options, "eps", "epsilon value");
  const auto [beta1, beta2] = options.pair("betas");
  check(beta1 >= 0 && beta1 < 1, "Invalid beta parameter at index 0: ", beta1);
  check(beta2 >= 0 && beta2 < 1, "Invalid beta parameter at index 1: ", beta2);
  check_not_negative(options, "weight_decay", "weight_decay value");
  options.flag("amsgrad");
  options.flag("maximize");
}

void Adam::update(const Options& options, std::span<const Update> updates) {
  static constexpr OpRef kStep("tensord::adam_step_");
  const auto [beta1, beta2] = options.pair("betas");
  const auto means = states_of(updates, 0, zeros_for), squares = states_of(updates, 1, zeros_for);
  const auto most = options.flag("amsgrad") ? states_of(updates, 2, zeros_for) : std::vector<Tensor>();
  kStep.call<void>(params_of(updates), grads_of(updates), means, squares, most, steps_of(updates), options.number("lr"),
                   beta1, beta2, options.number("eps"), options.number("weight_decay"), is_decoupled_,
                   options.flag("maximize"));
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
                {"square_avg", "momentum_buffer", "grad_avg"}, StepKind::kInt) {
  add_param_groups(std::move(groups));
}
RMSprop::RMSprop(std::vector<Tensor> params, const RMSpropOptions& options)
    : RMSprop(one_group(std::move(params)), options) {}

void RMSprop::check_options(const Options& options) const {
  check_not_negative(options, "lr", "learning rate");
  check_not_negative(options, "eps", "epsilon value");
  check_not_negative(options, "momentum", "momentum value");
  check_not_negative(options, "weight_decay", "weight_decay value");
  check_not_negative(options, "alpha", "alpha value");
  options.flag("centered");
  options.flag("maximize");
}

void RMSprop::update(const Options& options, std::span<const Update> updates) {
  static constexpr OpRef kStep("tensord::rmsprop_step_");
  const double momentum = options.number("momentum");
  const auto squares = states_of(updates, 0, zeros_for);
  const auto buffers = momentum > 0 ? states_of(updates, 1, zeros_for) : std::vector<Tensor>();
  const auto means = options.flag("centered") ? states_of(updates, 2, zeros_for) : std::vector<Tensor>();
  kStep.call<void>(params_of(updates), grads_of(updates), squares, buffers, means, options.number("lr"),
                   options.number("alpha"), options.number("eps"), options.number("weight_decay"), momentum,
                   options.flag("maximize"));
}

Adagrad::Adagrad(std::vector<ParamGroup> groups, const AdagradOptions& options)
    : Optimizer("Adagrad",
                {{"lr", options.lr},
                 {"lr_decay", options.lr_decay},
                 {"eps", options.eps},
                 {"weight_decay", options.weight_decay},
                 {"initial_accumulator_value", options.initial_accumulator_value},
                 {"maximize", options.maximize}},
                {"sum"}, StepKind::kTensor) {
  add_param_groups(std::move(groups));
}
Adagrad::Adagrad(std::vector<Tensor> params, const AdagradOptions& options)
    : Adagrad(one_group(std::move(params)), options) {}

void Adagrad::check_options(const Options& options) const {
  check_not_negative(options, "lr", "learning rate");
  check_not_negative(options, "lr_decay", "lr_decay value");
  check_not_negative(options, "weight_decay", "weight_decay value");
  check_not_negative(options, "initial_accumulator_value", "initial_accumulator_value value");
  check_not_negative(options, "eps", "epsilon value");
  options.flag("maximize");
}

void Adagrad::update(const Options& options, std::span<const Update> updates) {
  static constexpr OpRef kStep("tensord::adagrad_step_");
  const double start = options.number("initial_accumulator_value");
  const auto sums = states_of(updates, 0, [&](const Tensor& param) {
    const Tensor sum = zeros_for(param);
    if (start != 0) sum.copy_from(Tensor::scalar(start));
    return sum;
  });
  kStep.call<void>(params_of(updates), grads_of(updates), sums, steps_of(updates), options.number("lr"),
                   options.number("lr_decay"), options.number("weight_decay"), options.number("eps"),
                   options.flag("maximize"));
}

// Its update is in sparse_optimizers.cpp.
SparseAdam::SparseAdam(std::vector<ParamGroup> groups, const SparseAdamOptions& options)
    : Optimizer("SparseAdam",
                {{"lr", options.lr},
                 {"betas", betas_value(options.betas)},
                 {"eps", options.eps},
                 {"maximize", options.maximize}},
                {"exp_avg", "exp_avg_sq"}, StepKind::kInt) {
  add_param_groups(std::move(groups));
}
SparseAdam::SparseAdam(std::vector<Tensor> params, const SparseAdamOptions& options)
    : SparseAdam(one_group(std::move(params)), options) {}

void SparseAdam::check_options(const Options& options) const {
  check(options.number("lr") > 0, "Invalid learning rate: ", options.number("lr"));
  check(options.number("eps") > 0, "Invalid epsilon value: ", options.number("eps"));
  const auto [beta1, beta2] = options.pair("betas");
  check(beta1 >= 0 && beta1 < 1, "Invalid beta parameter at index 0: ", beta1);
  check(beta2 >= 0 && beta2 < 1, "Invalid beta parameter at index 1: ", beta2);
  options.flag("maximize");
}

namespace {

// An optimiser whose defaults are overridden by `options`, which every group then has.
template <class O>
std::unique_ptr<Optimizer> make(std::vector<ParamGroup> groups, const Options& options) {
  for (ParamGroup& group : groups) {
    Options all = options;
    for (const auto& [name, value] : group.options.items()) all.set(name, value);
    group.options = std::move(all);
  }
  return std::make_unique<O>(std::move(groups));
}

std::unique_ptr<Optimizer> make_lbfgs(std::vector<ParamGroup> groups, const Options& options) {
  check(groups.size() == 1, "LBFGS doesn't support per-parameter options (parameter groups)");
  auto optimizer = std::make_unique<LBFGS>(std::move(groups.front().params));
  Options all = options;
  for (const auto& [name, value] : groups.front().options.items()) all.set(name, value);
  if (all.has("max_iter") && !all.has("max_eval")) {
    const int64_t max_iter = std::min(all.integer("max_iter"), std::numeric_limits<int64_t>::max() / 2);
    all.set("max_eval", max_iter + max_iter / 4);
  }
  optimizer->set_options(all);
  return optimizer;
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(std::string_view kind, std::vector<ParamGroup> groups,
                                          const Options& options) {
  std::string name(kind);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name == "sgd") return make<SGD>(std::move(groups), options);
  if (name == "adam") return make<Adam>(std::move(groups), options);
  if (name == "adamw") return make<AdamW>(std::move(groups), options);
  if (name == "rmsprop") return make<RMSprop>(std::move(groups), options);
  if (name == "adagrad") return make<Adagrad>(std::move(groups), options);
  if (name == "sparseadam") return make<SparseAdam>(std::move(groups), options);
  if (name == "lbfgs") return make_lbfgs(std::move(groups), options);
  fail(ErrorCode::kInvalidArgument, "unknown optimizer \"", kind,
       "\"; there are sgd, adam, adamw, rmsprop, adagrad, sparseadam and lbfgs");
}

}  // namespace tensord::nn
