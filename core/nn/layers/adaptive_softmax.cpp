#include "core/nn/layers/adaptive_softmax.h"

#include <cmath>

#include "core/ops/run.h"
#include "core/tensor/grad_mode.h"

namespace tensord::nn {
namespace {

using ops::call;

Tensor log_softmax(const Tensor& scores) { return call("aten::log_softmax.int", scores, 1, ops::Value()); }
// x[i, which[i]].
Tensor pick(const Tensor& x, const Tensor& which) {
  return call("aten::squeeze.dim", call("aten::gather", x, 1, call("aten::unsqueeze", which, 1)), 1);
}

}  // namespace

AdaptiveLogSoftmaxWithLoss::AdaptiveLogSoftmaxWithLoss(int64_t in_features, int64_t num_classes,
                                                       std::vector<int64_t> cutoffs, double div_value, bool head_bias)
    : Module("AdaptiveLogSoftmaxWithLoss"), cutoffs_(std::move(cutoffs)) {
  check(!cutoffs_.empty(), kind(), ": cutoffs should be a sequence of length larger than 0");
  cutoffs_.push_back(num_classes);
  for (size_t i = 0; i < cutoffs_.size(); ++i) {
    check(cutoffs_[i] > (i == 0 ? 0 : cutoffs_[i - 1]), kind(),
          ": cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value "
          "is "
          "between 1 and n_classes-1");
  }
  const auto clusters = static_cast<int64_t>(cutoffs_.size()) - 1;
  head_ = register_module("head", std::make_shared<Linear>(in_features, cutoffs_[0] + clusters, head_bias));
  tail_ = register_module("tail", std::make_shared<ModuleList>());
  for (size_t i = 0; i + 1 < cutoffs_.size(); ++i) {
    const auto inner = static_cast<int64_t>(
        std::floor(static_cast<double>(in_features) / std::pow(div_value, static_cast<double>(i + 1))));
    // Created in this order, because it determines the random initial values.
    const auto down = std::make_shared<Linear>(in_features, inner, false);
    const auto up = std::make_shared<Linear>(inner, cutoffs_[i + 1] - cutoffs_[i], false);
    tail_->push_back(sequential(down, up));
  }
}

Tensors AdaptiveLogSoftmaxWithLoss::forward(const Tensors& inputs) {
  check(inputs.size() == 2, kind(), ": expected an input and a target but got ", inputs.size(), " tensors");
  const Tensor &input = inputs[0], &target = inputs[1];
  check(input.ndim() == 2 && target.ndim() == 1 && input.size(0) == target.size(0) && target.dtype() == DType::kInt64,
        kind(), ": expected an input [N, features] and a target int64[N] but got ", describe(input), " and ",
        describe(target));
  const Tensor out_of_range =
      call("aten::__or__.Tensor", call("aten::lt.Scalar", target, 0), call("aten::ge.Scalar", target, cutoffs_.back()));
  check(!call("aten::any", out_of_range).item_bool(), kind(), ": Target values should be in [0, ", cutoffs_.back() - 1,
        "]");
  Tensor in_head = target, own = call("aten::new_zeros", input, Dims{input.size(0)});
  for (size_t i = 0; i + 1 < cutoffs_.size(); ++i) {
    const Tensor is_there = call("aten::__and__.Tensor", call("aten::ge.Scalar", target, cutoffs_[i]),
                                 call("aten::lt.Scalar", target, cutoffs_[i + 1]));
    const Tensor rows = call("aten::squeeze.dim", call("aten::nonzero", is_there), 1);
    if (rows.numel() == 0) continue;
    const Tensor scores = log_softmax((*tail_)[i](call("aten::index_select", input, 0, rows)));
    const Tensor within = call("aten::sub.Scalar", call("aten::index_select", target, 0, rows), cutoffs_[i], 1);
    own = call("aten::index_add", own, 0, rows, pick(scores, within), 1);
    in_head = call("aten::index_fill.int_Scalar", in_head, 0, rows, cutoffs_[0] + static_cast<int64_t>(i));
  }
  const Tensor out = call("aten::add.Tensor", own, pick(log_softmax((*head_)(input)), in_head), 1);
  return {out, call("aten::mean", call("aten::neg", out))};
}

Tensor AdaptiveLogSoftmaxWithLoss::log_prob(const Tensor& input) const {
  const Tensor head = log_softmax((*head_)(input));
  std::vector<Tensor> parts{call("aten::narrow", head, 1, 0, cutoffs_[0])};
  for (size_t i = 0; i + 1 < cutoffs_.size(); ++i) {
    const Tensor cluster = call("aten::narrow", head, 1, cutoffs_[0] + static_cast<int64_t>(i), 1);
    parts.push_back(call("aten::add.Tensor", log_softmax((*tail_)[i](input)), cluster, 1));
  }
  return call("aten::cat", parts, 1);
}

Tensor AdaptiveLogSoftmaxWithLoss::predict(const Tensor& input) const {
  const NoGradGuard without_grad;
  return call("aten::argmax", log_prob(input), 1, false);
}

}  // namespace tensord::nn
