#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>

#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/nn/optim/line_search.h"
#include "core/nn/optim/optimizer_info.h"
#include "core/nn/state.h"
#include "core/ops/run.h"
#include "core/tensor/grad_mode.h"
#include "ops/factory.h"
#include "ops/linear.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/sparse.h"
#include "ops/view.h"

namespace tensord::nn {
namespace {

using ops::Value;

double dot(const Tensor& a, const Tensor& b) { return ops::dot(a, b).item_double(); }
double largest(const Tensor& x) { return ops::max(ops::abs(x)).item_double(); }
Tensor scaled(const Tensor& x, double factor) { return ops::mul(x, factor); }
void add_to(const Tensor& x, const Tensor& y, double factor) { ops::add_(x, y, {.alpha = factor}); }

// All gradients as one vector.
Tensor flat_gradient(const std::vector<Tensor>& params) {
  std::vector<Tensor> parts;
  for (const Tensor& param : params) {
    const Tensor grad = autograd::grad(param);
    parts.push_back(grad.defined() ? ops::reshape(ops::to_dense(grad), Dims{-1})
                                   : ops::new_zeros(param, Dims{param.numel()}));
  }
  return ops::cat(parts);
}

// params += factor · direction.
void move(const std::vector<Tensor>& params, const Tensor& direction, double factor) {
  int64_t begin = 0;
  for (const Tensor& param : params) {
    const Tensor part = direction.as_view({param.numel()}, {1}, direction.offset() + begin);
    add_to(param, ops::reshape(part, param.sizes()), factor);
    begin += param.numel();
  }
}

Value list_value(const std::deque<Tensor>& tensors) { return ops::make_tensor_list({tensors.begin(), tensors.end()}); }

}  // namespace

// State kept between iterations, also across steps.
struct LBFGS::Memory {
  int64_t evaluations = 0, iterations = 0;
  Tensor direction;
  double t = 0;
  std::deque<Tensor> gradient_changes, moves;  // y and s, oldest first
  std::deque<double> factors;                  // 1 / (y · s)
  double scale = 1;                            // of the initial inverse Hessian
  Tensor previous_gradient;
  double previous_loss = 0;

  // The Newton direction with the inverse Hessian approximated by the history (two-loop recursion; Nocedal and Wright,
  // section 7.2).
  Tensor newton_direction(const Tensor& gradient) const {
    const Tensor q = ops::neg(gradient);
    std::vector<double> weights(moves.size());
    for (size_t i = moves.size(); i-- > 0;) {
      weights[i] = dot(moves[i], q) * factors[i];
      add_to(q, gradient_changes[i], -weights[i]);
    }
    const Tensor r = scaled(q, scale);
    for (size_t i = 0; i < moves.size(); ++i) {
      add_to(r, moves[i], weights[i] - dot(gradient_changes[i], r) * factors[i]);
    }
    return r;
  }

  void update_direction(const Tensor& gradient, size_t history_size) {
    if (++iterations == 1) {
      direction = ops::neg(gradient);
      return;
    }
    const Tensor y = ops::sub(gradient, previous_gradient), s = scaled(direction, t);
    const double ys = dot(y, s);
    if (ys > 1e-10) {
      if (moves.size() >= history_size) {
        gradient_changes.pop_front();
        moves.pop_front();
        factors.pop_front();
      }
      gradient_changes.push_back(y);
      moves.push_back(s);
      factors.push_back(1 / ys);
      scale = ys / dot(y, y);
    }
    direction = newton_direction(gradient);
  }
};

LBFGS::LBFGS(std::vector<Tensor> params, const LBFGSOptions& options)
    : Optimizer("LBFGS",
                {{"lr", options.lr},
                 {"max_iter", options.max_iter},
                 {"max_eval", options.max_eval > 0 ? options.max_eval : options.max_iter * 5 / 4},
                 {"tolerance_grad", options.tolerance_grad},
                 {"tolerance_change", options.tolerance_change},
                 {"history_size", options.history_size},
                 {"line_search_fn", options.strong_wolfe ? Value("strong_wolfe") : Value()}},
                {}, StepKind::kNone, ""),
      memory_(std::make_unique<Memory>()) {
  check(!params.empty(), "optimizer got an empty parameter list");
  add_param_group({std::move(params), {}});
}
LBFGS::~LBFGS() = default;

void LBFGS::use_master_weights() { fail(ErrorCode::kUnimplemented, "LBFGS has no master weights"); }

void LBFGS::add_param_group(ParamGroup group) {
  check(groups_.empty(), "LBFGS doesn't support per-parameter options (parameter groups)");
  Optimizer::add_param_group(std::move(group));
}

namespace {

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

const OptimizerInfo& lbfgs_info() {
  static const LBFGSOptions defaults;
  static const OptimizerInfo info{.name = "lbfgs",
                                  .options = {{.name = "lr", .default_value = defaults.lr, .text = "learning rate"},
                                              {.name = "max_iter",
                                               .kind = OptionInfo::Kind::kInteger,
                                               .default_value = static_cast<double>(defaults.max_iter),
                                               .min = 1,
                                               .text = "iterations of a step",
                                               .error_text = "LBFGS: max_iter must be positive, got "},
                                              {.name = "history_size",
                                               .kind = OptionInfo::Kind::kInteger,
                                               .default_value = static_cast<double>(defaults.history_size),
                                               .min = 1,
                                               .text = "number of kept updates",
                                               .error_text = "LBFGS: history_size must be positive, got "},
                                              {.name = "tolerance_grad",
                                               .default_value = defaults.tolerance_grad,
                                               .text = "the step ends at a gradient below this"},
                                              {.name = "tolerance_change",
                                               .default_value = defaults.tolerance_change,
                                               .text = "the step ends at a change below this"}},
                                  .needs_closure = true,
                                  .make = make_lbfgs};
  return info;
}

void LBFGS::check_options(const Options& options) const {
  lbfgs_info().check(options);
  options.integer("max_eval");
  const Value* search = options.find("line_search_fn");
  check(search != nullptr && (search->is_none() || (search->is_string() && search->to_string() == "strong_wolfe")),
        "only 'strong_wolfe' is supported");
}

Tensor LBFGS::step(const Closure& closure) {
  check(static_cast<bool>(closure), "LBFGS needs a closure that computes the loss and its gradients again");
  const NoGradGuard without_grad;
  const std::vector<Tensor>& params = groups_.front().params;
  const Options& options = groups_.front().options;
  const double lr = options.number("lr"), tolerance_change = options.number("tolerance_change"),
               tolerance_grad = options.number("tolerance_grad");
  const int64_t max_iter = options.integer("max_iter"), max_eval = options.integer("max_eval");
  const bool searches = !options.find("line_search_fn")->is_none();
  Memory& m = *memory_;

  int64_t evaluations = 0;
  const auto evaluate = [&]() {
    const EnableGradGuard with_grad;
    ++evaluations;
    ++m.evaluations;
    return closure();
  };
  const Tensor first_loss = evaluate();
  double loss = first_loss.item_double();
  Tensor gradient = flat_gradient(params);
  if (largest(gradient) <= tolerance_grad) return first_loss;

  for (int64_t i = 1; i <= max_iter; ++i) {
    m.update_direction(gradient, static_cast<size_t>(options.integer("history_size")));
    m.previous_gradient = gradient;
    m.previous_loss = loss;
    m.t = m.iterations == 1 ? std::min(1.0, 1 / ops::sum(ops::abs(gradient)).item_double()) * lr : lr;
    const double slope = dot(gradient, m.direction);
    if (slope > -tolerance_change) break;
    if (searches) {
      std::vector<Tensor> start;
      for (const Tensor& param : params) start.push_back(param.clone());
      const auto at = [&](double t) {
        move(params, m.direction, t);
        const double value = evaluate().item_double();
        Tensor there = flat_gradient(params);
        for (size_t p = 0; p < params.size(); ++p) ops::copy_(params[p], start[p]);
        const double there_slope = dot(there, m.direction);
        return LinePoint{t, value, std::move(there), there_slope};
      };
      const auto found = strong_wolfe(at, {0, loss, gradient, slope}, m.t, largest(m.direction)).point;
      loss = found.value, gradient = found.gradient, m.t = found.t;
      move(params, m.direction, m.t);
    } else {
      move(params, m.direction, m.t);
      if (i == max_iter) break;
      loss = evaluate().item_double();
      gradient = flat_gradient(params);
    }
    if (i == max_iter || evaluations >= max_eval || largest(gradient) <= tolerance_grad ||
        largest(m.direction) * std::abs(m.t) <= tolerance_change || std::abs(loss - m.previous_loss) < tolerance_change)
      break;
  }
  return first_loss;
}

ops::Dict LBFGS::save_extra() const {
  const Memory& m = *memory_;
  if (m.evaluations == 0) return {};
  const ops::Dict state = new_state();
  set_item(state, "func_evals", m.evaluations);
  set_item(state, "n_iter", m.iterations);
  if (m.iterations == 0) return state;
  set_item(state, "d", m.direction);
  set_item(state, "t", m.t);
  set_item(state, "old_dirs", list_value(m.gradient_changes));
  set_item(state, "old_stps", list_value(m.moves));
  set_item(state, "ro", numbers_value({m.factors.begin(), m.factors.end()}));
  set_item(state, "H_diag", m.scale);
  set_item(state, "prev_flat_grad", m.previous_gradient);
  set_item(state, "prev_loss", m.previous_loss);
  return state;
}

void LBFGS::load_extra(const ops::DictObject& states) {
  auto memory = std::make_unique<Memory>();
  const std::ptrdiff_t at = states.find(Value(int64_t{0}));
  if (at >= 0) {
    const ops::DictObject& state = as_dict(states.items()[static_cast<size_t>(at)].second, "state");
    int64_t total = 0;
    for (const Tensor& param : groups_.front().params) total += param.numel();
    const DType dtype = groups_.front().params.front().dtype();
    const auto vector = [&](const Value& value, const char* key) {
      check(value.is_strided() && value.to_tensor().sizes() == Dims{total}, "LBFGS: state \"", key,
            "\" is not a vector of ", total, " elements");
      return value.to_tensor().to(dtype).clone();
    };
    memory->evaluations = get_integer(state, "func_evals");
    memory->iterations = get_integer(state, "n_iter");
    if (memory->iterations > 0) {
      memory->direction = vector(get_item(state, "d"), "d");
      memory->t = get_number(state, "t");
      for (const Value& y : get_items(get_item(state, "old_dirs"), "old_dirs"))
        memory->gradient_changes.push_back(vector(y, "old_dirs"));
      for (const Value& s : get_items(get_item(state, "old_stps"), "old_stps"))
        memory->moves.push_back(vector(s, "old_stps"));
      for (const double factor : get_numbers(state, "ro")) memory->factors.push_back(factor);
      check(memory->moves.size() == memory->factors.size() && memory->moves.size() == memory->gradient_changes.size(),
            "LBFGS: the lists of the state differ in length");
      memory->scale = get_number(state, "H_diag");
      memory->previous_gradient = vector(get_item(state, "prev_flat_grad"), "prev_flat_grad");
      memory->previous_loss = get_number(state, "prev_loss");
    }
  }
  memory_ = std::move(memory);
}

}  // namespace tensord::nn
