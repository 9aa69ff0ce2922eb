#include "core/nn/layers/losses.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "core/nn/layers/sum.h"
#include "core/ops/run.h"
#include "core/tensor/grad_mode.h"

namespace tensord::nn {
namespace {

using ops::call;

Tensor reduced(const Tensor& loss, Reduction reduction) {
  if (reduction == Reduction::kNone) return loss;
  return call(reduction == Reduction::kMean ? "aten::mean" : "aten::sum", loss);
}
Tensor sub(const Tensor& a, const Tensor& b) { return call("aten::sub.Tensor", a, b, 1); }
Tensor mul(const Tensor& a, const Tensor& b) { return call("aten::mul.Tensor", a, b); }

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
    if (var.sizes() == rows) var = call("aten::unsqueeze", var, -1);
    check(var.sizes() == single, kind(), ": var is of incorrect size ", var.sizes(), " for an input ", input.sizes());
  }
  Tensor missing;
  {
    // Gradients pass through as if nothing had been clamped.
    const NoGradGuard without_grad;
    check(!call("aten::any", call("aten::lt.Scalar", var, 0)).item_bool(), kind(), ": var has negative entry/entries");
    missing = sub(call("aten::clamp", var, eps_), var);
  }
  var = add(var, missing);
  const Tensor far = sub(input, target);
  const Tensor squares = call("aten::div.Tensor", mul(far, far), var);
  Tensor loss = call("aten::mul.Scalar", add(call("aten::log", var), squares), 0.5);
  if (full_) loss = call("aten::add.Scalar", loss, 0.5 * std::log(2 * std::numbers::pi), 1);
  return {reduced(loss, reduction_)};
}

MultiLabelSoftMarginLoss::MultiLabelSoftMarginLoss(const Tensor& weight, Reduction reduction)
    : Module("MultiLabelSoftMarginLoss"), weight(register_buffer("weight", weight)), reduction_(reduction) {}

Tensors MultiLabelSoftMarginLoss::forward(const Tensors& inputs) {
  check(inputs.size() == 2, kind(), ": expected 2 tensors but got ", inputs.size());
  const Tensor &input = inputs[0], &target = inputs[1];
  const Tensor yes = call("aten::log_sigmoid", input), no = call("aten::log_sigmoid", call("aten::neg", input));
  const Tensor others = call("aten::rsub.Scalar", target, 1, 1);
  Tensor loss = call("aten::neg", add(mul(target, yes), mul(others, no)));
  if (weight.defined()) loss = mul(loss, weight);
  return {reduced(call("aten::mean.dim", loss, Dims{-1}), reduction_)};
}

TripletMarginWithDistanceLoss::TripletMarginWithDistanceLoss(Distance distance, double margin, bool swap,
                                                             Reduction reduction)
    : Module("TripletMarginWithDistanceLoss"),
      distance_(distance ? std::move(distance)
                         : [](const Tensor& a, const Tensor& b) { return call("aten::pairwise_distance", a, b); }),
      margin_(margin),
      swap_(swap),
      reduction_(reduction) {
  check(margin > 0, kind(), ": margin must be above 0 but is ", margin);
}

Tensors TripletMarginWithDistanceLoss::forward(const Tensors& inputs) {
  check(inputs.size() == 3, kind(), ": expected 3 tensors but got ", inputs.size());
  const Tensor near = distance_(inputs[0], inputs[1]);
  Tensor far = distance_(inputs[0], inputs[2]);
  if (swap_) far = call("aten::minimum", far, distance_(inputs[1], inputs[2]));
  const Tensor loss = call("aten::clamp_min", call("aten::add.Scalar", sub(near, far), margin_, 1), 0);
  return {reduced(loss, reduction_)};
}

}  // namespace tensord::nn
