#include "core/nn/layers/losses.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "core/nn/layers/sum.h"
#include "core/ops/run.h"
#include "core/tensor/grad_mode.h"
#include "ops/loss.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::nn {
namespace {

Tensor reduced(const Tensor& loss, Reduction reduction) {
  if (reduction == Reduction::kNone) return loss;
  return reduction == Reduction::kMean ? ops::mean(loss) : ops::sum(loss);
}
Tensor sub(const Tensor& a, const Tensor& b) { return ops::sub(a, b); }
Tensor mul(const Tensor& a, const Tensor& b) { return ops::mul(a, b); }

}  // namespace

GaussianNLLLoss::GaussianNLLLoss(bool full, double eps, Reduction reduction)
    : Module("GaussianNLLLoss"), full_(full), eps_(eps), reduction_(reduction) {}

Tensors GaussianNLLLoss::forward(const Tensors& inputs) {
  check(inputs.size() == 3, kind(), ": expected 3 tensors but got ", inputs.size());
  const Tensor &input = inputs[0], &target = inputs[1];
  Tensor var = inputs[2];
  if (var.sizes() != input.sizes()) {
    Dims rows = input.sizes();
    if (!rows.empty()) rows.erase(rows.size() - 1);
    Dims single = rows;
    single.push_back(1);
    if (var.sizes() == rows) var = ops::unsqueeze(var, -1);
    check(var.sizes() == single, kind(), ": var is of incorrect size ", var.sizes(), " for an input ", input.sizes());
  }
  Tensor missing;
  {
    // Gradients pass through as if nothing had been clamped.
    const NoGradGuard without_grad;
    check(!ops::any(ops::lt(var, 0)).item_bool(), kind(), ": var has negative entry/entries");
    missing = sub(ops::clamp(var, eps_), var);
  }
  var = add(var, missing);
  const Tensor far = sub(input, target);
  const Tensor squares = ops::div(mul(far, far), var);
  Tensor loss = ops::mul(add(ops::log(var), squares), 0.5);
  if (full_) loss = ops::add(loss, 0.5 * std::log(2 * std::numbers::pi));
  return {reduced(loss, reduction_)};
}

MultiLabelSoftMarginLoss::MultiLabelSoftMarginLoss(const Tensor& weight, Reduction reduction)
    : Module("MultiLabelSoftMarginLoss"), weight(register_buffer("weight", weight)), reduction_(reduction) {}

Tensors MultiLabelSoftMarginLoss::forward(const Tensors& inputs) {
  check(inputs.size() == 2, kind(), ": expected 2 tensors but got ", inputs.size());
  const Tensor &input = inputs[0], &target = inputs[1];
  const Tensor yes = ops::log_sigmoid(input), no = ops::log_sigmoid(ops::neg(input));
  const Tensor others = ops::rsub(target, 1);
  Tensor loss = ops::neg(add(mul(target, yes), mul(others, no)));
  if (weight.defined()) loss = mul(loss, weight);
  return {reduced(ops::mean(loss, Dims{-1}), reduction_)};
}

TripletMarginWithDistanceLoss::TripletMarginWithDistanceLoss(Distance distance, double margin, bool swap,
                                                             Reduction reduction)
    : Module("TripletMarginWithDistanceLoss"),
      distance_(distance ? std::move(distance)
                         : [](const Tensor& a, const Tensor& b) { return ops::pairwise_distance(a, b); }),
      margin_(margin),
      swap_(swap),
      reduction_(reduction) {
  check(margin > 0, kind(), ": margin must be above 0 but is ", margin);
}

Tensors TripletMarginWithDistanceLoss::forward(const Tensors& inputs) {
  check(inputs.size() == 3, kind(), ": expected 3 tensors but got ", inputs.size());
  const Tensor near = distance_(inputs[0], inputs[1]);
  Tensor far = distance_(inputs[0], inputs[2]);
  if (swap_) far = ops::minimum(far, distance_(inputs[1], inputs[2]));
  const Tensor loss = ops::clamp_min(ops::add(sub(near, far), margin_), 0);
  return {reduced(loss, reduction_)};
}

}  // namespace tensord::nn
