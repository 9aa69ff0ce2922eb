// cross_entropy_loss. With labels it is one operator that computes the loss in two reads of the scores and keeps two
// numbers for each sample. The gradient is written from these in one pass: the softmax is never stored.
#include <algorithm>
#include <vector>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/expr/expr.h"
#include "kernels/loss/class.h"
#include "kernels/loss/loss.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/norm.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {

ClassLoss make_cross_entropy(const Tensor& x, const Tensor& target, const std::optional<Tensor>& weight,
                             int64_t reduction, int64_t ignore, double smoothing) {
  check(reduction >= kLossNone && reduction <= kLossSum, reduction, " is not a valid value for reduction");
  ClassLoss loss = make_class_loss(x, target, weight, ignore);
  check(loss.classes > 0 || loss.count() == 0, "there are no classes");
  loss.smoothing = smoothing;
  return loss;
}

namespace {

using gradient::Expr;
using ops::TensorMeta;
using ops::Value;
using MaybeTensor = std::optional<Tensor>;

DType wide_dtype(const Tensor& x) { return x.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }
// Composed of operators, for the gradient of the gradient. The arguments are those of the backward below.
struct Slopes {
  const std::span<const Value>& v;
  Tensor x = v[1].to_tensor(), target = v[2].to_tensor();
  int64_t dim = x.ndim() == 1 ? 0 : 1;
  double smoothing = v[6].to_float(), share = smoothing / static_cast<double>(std::max<int64_t>(1, x.sizes()[dim]));
  Expr mask, labels;  // one-hot labels: x's sizes with one class; 0 where a label is ignored

  explicit Slopes(const std::span<const Value>& arguments) : v(arguments) {
    Dims one = x.sizes();
    one[static_cast<size_t>(dim)] = 1;
    const Expr given = Expr(ops::reshape(ops::to(target, DType::kInt64), one));
    const Expr kept = given != static_cast<double>(v[5].to_int());
    mask = Expr(ops::to(kept.tensor(), x.dtype()));
    labels = Expr(ops::where(kept.tensor(), given.tensor(), gradient::zeros_like(given.value)));
  }
  Expr at_label(const Expr& all) const { return Expr(ops::gather(all.tensor(), dim, labels.tensor())); }
  Expr sum(const Expr& all) const { return Expr(ops::sum(all.tensor(), Dims{dim}, true)); }
  // The class weights along the dimension of classes, or ones.
  Expr weights() const {
    Dims sizes(static_cast<size_t>(x.ndim()), 1);
    sizes[static_cast<size_t>(dim)] = x.sizes()[static_cast<size_t>(dim)];
    if (!v[3].is_tensor()) return Expr(ops::ones_like(ops::detach(x)));
    return Expr(ops::expand(ops::reshape(v[3].to_tensor(), sizes), x.sizes()));
  }
};

// The backward is k (A p - B), linear in k = g (over the total weight); dp = p (a - sum(a p)).
std::vector<Value> gradient_of_backward(const ops::GradArgs& args) {
  const auto& v = args.inputs;
  std::vector<Value> out(v.size());
  const Slopes s(v);
  const Expr a = args.grad_outputs[0], p = Expr(ops::softmax(s.x, s.dim)), w = s.weights();
  const Expr own = s.mask * s.at_label(w) * (1 - s.smoothing), scale = own + s.mask * s.sum(w) * s.share;
  const Expr mean = s.sum(a * p);
  const bool is_mean = v[4].to_int() == kLossMean, is_none = v[4].to_int() == kLossNone;
  if (args.needs(0)) {
    Expr slope = scale * mean - own * s.at_label(a) - s.mask * s.sum(a * w) * s.share;
    if (is_mean) slope = slope / Expr(v[8]);
    const Tensor& g = v[0].to_tensor();
    out[0] = gradient::fit_gradient(
        is_none ? ops::reshape(slope.tensor(), g.sizes()) : ops::reshape(ops::sum(slope.tensor()), g.sizes()), g);
  }
  if (args.needs(1)) {
    Expr k = is_none ? Expr(ops::reshape(v[0].to_tensor(), s.mask.tensor().sizes()))
                     : Expr(ops::reshape(v[0].to_tensor(), Dims{}));
    if (is_mean) k = k / Expr(v[8]);
    out[1] = gradient::fit_gradient(k * scale * (p * (a - mean)), s.x);
  }
  return out;
}

constexpr const char* kForward = "tensord::cross_entropy";
constexpr const char* kBackward = "tensord::cross_entropy_backward";

// `moments` holds the largest score of each sample, followed by the logarithms of the sums of exponentials.
OP("tensord::cross_entropy")
    .infer([](const Tensor& x, const Tensor& target, MaybeTensor weight, int64_t reduction, int64_t ignore,
              double smoothing) {
      const ClassLoss loss = make_cross_entropy(x, target, weight, reduction, ignore, smoothing);
      return std::vector<TensorMeta>{
          {reduction == kLossNone && x.ndim() > 1 ? target.sizes() : Dims{}, x.dtype(), {}, x.device()},
          {Dims{2 * loss.count()}, wide_dtype(x), {}, x.device()},
          {Dims{}, wide_dtype(x), {}, x.device()}};
    })
    .gradient([](const ops::GradArgs& args) {
      const auto& v = args.inputs;
      std::vector<Value> out(v.size());
      if (!args.grad_outputs[0].defined()) return out;
      out[0] = ops::call_by_name(kBackward, args.grad_outputs[0], v[0], v[1], v[2], v[3], v[4], v[5], args.outputs[1],
                                 args.outputs[2]);
      return out;
    })
    .saves("self, target, weight, result1, result2")
    .reduction();

OP("tensord::cross_entropy_backward")
    .infer([](const Tensor& g, const Tensor& x, const Tensor& target, MaybeTensor weight, int64_t reduction,
              int64_t ignore, double smoothing, const Tensor& moments, const Tensor& total_weight) {
      const ClassLoss loss = make_cross_entropy(x, target, weight, reduction, ignore, smoothing);
      check(g.numel() == (reduction == kLossNone ? loss.count() : 1), "the gradient is of size ", g.sizes());
      check(moments.numel() == 2 * loss.count() && moments.dtype() == wide_dtype(x) && moments.is_contiguous() &&
                total_weight.numel() == 1,
            "the moments are of size ", moments.sizes());
      return TensorMeta{x.sizes(), x.dtype(), {}, x.device()};
    })
    .gradient(gradient_of_backward)
    .saves("grad_output, self, target, weight, total_weight");

// A target with the sizes of the scores holds probabilities.
Tensor with_probabilities(const Tensor& x, const Tensor& target, const MaybeTensor& weight, int64_t reduction,
                          int64_t ignore, double smoothing) {
  check(is_floating(target.dtype()), "Expected floating point type for target with class probabilities, got ",
        name_of(target.dtype()));
  check(ignore < 0, "ignore_index is not supported for floating point target");
  const int64_t dim = x.ndim() == 1 ? 0 : 1, classes = x.sizes()[static_cast<size_t>(dim)];
  check(!weight || (weight->ndim() == 1 && weight->numel() == classes),
        "cross_entropy: weight tensor should be defined either for all ", classes,
        " classes or no classes but got weight tensor of shape: ", weight ? weight->sizes() : Dims{});
  Expr probabilities = target;
  if (smoothing > 0) probabilities = probabilities * (1 - smoothing) + smoothing / static_cast<double>(classes);
  Expr products = Expr(ops::log_softmax(x, dim)) * probabilities;
  if (weight) {
    Dims sizes(static_cast<size_t>(x.ndim()), 1);
    sizes[static_cast<size_t>(dim)] = classes;
    products = products * Expr(ops::reshape(*weight, sizes));
  }
  if (reduction == kLossNone) {
    return (-Expr(ops::sum(products.tensor(), Dims{dim}))).tensor();
  }
  const Expr sum = -Expr(ops::sum(products.tensor()));
  check(reduction == kLossMean || reduction == kLossSum, reduction, " is not a valid value for reduction");
  return reduction == kLossSum ? sum.tensor()
                               : (sum / (static_cast<double>(x.numel()) / static_cast<double>(classes))).tensor();
}

OP("aten::cross_entropy_loss")
    .impl([](const Tensor& x, const Tensor& target, MaybeTensor weight, int64_t reduction, int64_t ignore,
             double smoothing) {
      check(smoothing >= 0 && smoothing <= 1, "label_smoothing must be between 0.0 and 1.0. Got: ", smoothing);
      if (x.sizes() == target.sizes() && x.ndim() > 0) {
        return with_probabilities(x, target, weight, reduction, ignore, smoothing);
      }
      const ops::Op& op = ops::get_op(kForward);
      const Value by = weight ? Value(*weight) : Value();
      return ops::run(op, std::vector<Value>{x, target, by, reduction, ignore, smoothing}).at(0).to_tensor();
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels
