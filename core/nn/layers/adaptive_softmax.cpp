#include "core/nn/layers/adaptive_softmax.h"

#include <cmath>

#include "core/ops/run.h"
#include "core/tensor/grad_mode.h"
#include "ops/embedding.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/norm.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::nn {
namespace {

Tensor log_softmax(const Tensor& scores) { return ops::log_softmax(scores, 1); }
// x[i, which[i]].
Tensor pick(const Tensor& x, const Tensor& which) {
  return ops::squeeze(ops::gather(x, 1, ops::unsqueeze(which, 1)), 1);
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
  const Tensor out_of_range = ops::__or__(ops::lt(target, 0), ops::ge(target, cutoffs_.back()));
  check(!ops::any(out_of_range).item_bool(), kind(), ": Target values should be in [0, ", cutoffs_.back() - 1, "]");
  Tensor in_head = target, own = ops::new_zeros(input, Dims{input.size(0)});
  for (size_t i = 0; i + 1 < cutoffs_.size(); ++i) {
    const Tensor is_there = ops::__and__(ops::ge(target, cutoffs_[i]), ops::lt(target, cutoffs_[i + 1]));
    const Tensor rows = ops::squeeze(ops::nonzero(is_there), 1);
    if (rows.numel() == 0) continue;
    const Tensor scores = log_softmax((*tail_)[i](ops::index_select(input, 0, rows)));
    const Tensor within = ops::sub(ops::index_select(target, 0, rows), cutoffs_[i]);
    own = ops::index_add(own, 0, rows, pick(scores, within));
    in_head = ops::index_fill(in_head, 0, rows, cutoffs_[0] + static_cast<int64_t>(i));
  }
  const Tensor out = ops::add(own, pick(log_softmax((*head_)(input)), in_head));
  return {out, ops::mean(ops::neg(out))};
}

Tensor AdaptiveLogSoftmaxWithLoss::log_prob(const Tensor& input) const {
  const Tensor head = log_softmax((*head_)(input));
  std::vector<Tensor> parts{ops::narrow(head, 1, 0, cutoffs_[0])};
  for (size_t i = 0; i + 1 < cutoffs_.size(); ++i) {
    const Tensor cluster = ops::narrow(head, 1, cutoffs_[0] + static_cast<int64_t>(i), 1);
    parts.push_back(ops::add(log_softmax((*tail_)[i](input)), cluster));
  }
  return ops::cat(parts, 1);
}

Tensor AdaptiveLogSoftmaxWithLoss::predict(const Tensor& input) const {
  const NoGradGuard without_grad;
  return ops::argmax(log_prob(input), 1);
}

}  // namespace tensord::nn
