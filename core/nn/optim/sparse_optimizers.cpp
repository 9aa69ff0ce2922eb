// Optimizer updates with sparse gradients: they read and write only the rows that the gradient has.
#include <cmath>

#include "core/base/error.h"
#include "core/nn/optim/optimizer.h"
#include "core/ops/run.h"
#include "core/ops/sparse.h"
#include "ops/embedding.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/pointwise.h"
#include "ops/sparse.h"
#include "ops/view.h"

namespace tensord::nn {
namespace {

using ops::SparsePtr;
using ops::Value;

Tensor call_sparse(const char* name, const Tensor& a, const Value& b, const Value& alpha) {
  return ops::call_by_name(name, a, b, alpha);
}

// A coalesced gradient, and access to the same positions in other tensors of the parameter's shape.
class Rows {
 public:
  Rows(const Tensor& grad, bool is_negated)
      : grad_(ops::as_sparse(ops::coalesce(grad))), values_(is_negated ? ops::neg(grad_->values()) : grad_->values()) {
    const Tensor indices = grad_->indices().to(values_.device());
    for (int64_t d = 0; d < grad_->sparse_dim(); ++d) places_.push_back(ops::select(indices, int64_t{0}, d));
  }

  bool is_empty() const { return values_.numel() == 0; }
  const Tensor& values() const { return values_; }
  Tensor of(const Tensor& tensor) const {
    return places_.size() == 1 ? ops::index_select(tensor, int64_t{0}, places_[0]) : ops::index(tensor, places_);
  }
  // tensor[places] += alpha · values. No position occurs twice.
  void add_to(const Tensor& tensor, const Tensor& values, double alpha = 1) const {
    if (places_.size() == 1) {
      ops::index_add_(tensor, int64_t{0}, places_[0], values, {.alpha = alpha});
    } else {
      ops::index_put_(tensor, places_, ops::mul(values, alpha), true);
    }
  }

 private:
  const SparsePtr grad_;
  Tensor values_;
  std::vector<Tensor> places_;  // one index tensor for each sparse dimension
};

// State number `which` of a parameter; the first step creates it.
template <class State, class Make>
Tensor& state_at(State& state, size_t which, const Make& make) {
  if (state.tensors.size() <= which) state.tensors.resize(which + 1);
  if (!state.tensors[which].defined()) state.tensors[which] = make();
  return state.tensors[which];
}

}  // namespace

// The momentum buffer is sparse too: it has all positions that any gradient had.
void SGD::update_sparse(const Options& options, const Update& update) {
  check(options.number("weight_decay") == 0, "SGD: weight_decay is not compatible with sparse gradients");
  const double momentum = options.number("momentum"), keep = 1 - options.number("dampening");
  Tensor step = update.grad;
  if (momentum != 0) {
    bool is_first = false;
    Tensor& buffer = state_at(*update.state, 0, [&] {
      is_first = true;
      return ops::clone(update.grad);
    });
    if (!is_first) {
      const Tensor kept = ops::mul(buffer, momentum);
      const Tensor sum = call_sparse("aten::add.Tensor", kept, update.grad, keep);
      buffer = ops::as_sparse(sum) ? ops::coalesce(sum) : sum;
    }
    if (options.flag("nesterov") && ops::as_sparse(buffer)) {
      step = call_sparse("aten::add.Tensor", update.grad, buffer, momentum);
    } else if (options.flag("nesterov")) {
      fail(ErrorCode::kUnimplemented, "SGD: nesterov with a sparse gradient after dense ones is not supported");
    } else {
      step = buffer;
    }
  }
  ops::add_(update.param, step, {.alpha = options.number("lr") * (options.flag("maximize") ? 1 : -1)});
}

void Adagrad::update_sparse(const Options& options, const Update& update) {
  check(options.number("weight_decay") == 0, "Adagrad: weight_decay option is not compatible with sparse gradients");
  const Tensor& param = update.param;
  const Tensor sum =
      state_at(*update.state, 0, [&] { return ops::full_like(param, options.number("initial_accumulator_value")); });
  const Rows rows(update.grad, options.flag("maximize"));
  rows.add_to(sum, ops::square(rows.values()));
  const Tensor deviation = ops::add(ops::sqrt(rows.of(sum)), options.number("eps"));
  const double decay = 1 + static_cast<double>(update.state->step - 1) * options.number("lr_decay");
  rows.add_to(param, ops::div(rows.values(), deviation), -options.number("lr") / decay);
}

void SparseAdam::update_sparse(const Options& options, const Update& update) {
  const auto [beta1, beta2] = options.pair("betas");
  const auto make = [&] { return zeros_for(update.param); };
  const Tensor mean = state_at(*update.state, 0, make), square = state_at(*update.state, 1, make);
  const Rows rows(update.grad, options.flag("maximize"));
  if (rows.is_empty()) return;
  const auto averaged = [&](const Tensor& average, const Tensor& values, double beta) {
    rows.add_to(average, ops::sub(values, rows.of(average)), 1 - beta);
    return rows.of(average);
  };
  const Tensor numerator = averaged(mean, rows.values(), beta1);
  const Tensor squares = averaged(square, ops::square(rows.values()), beta2);
  const Tensor denominator = ops::add(ops::sqrt(squares), options.number("eps"));
  const auto step = static_cast<double>(update.state->step);
  const double size = options.number("lr") * std::sqrt(1 - std::pow(beta2, step)) / (1 - std::pow(beta1, step));
  rows.add_to(update.param, ops::div(numerator, denominator), -size);
}

}  // namespace tensord::nn
