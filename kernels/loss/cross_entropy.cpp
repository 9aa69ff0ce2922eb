// cross_entropy_loss. With labels it is one operator that gives the loss from two reads of the scores, and keeps two
// numbers of each sample, from which the gradient is written in one pass: the softmax is never in memory.
#include <algorithm>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/fused/gradient_expr.h"
#include "kernels/loss/class.h"
#include "kernels/loss/loss.h"

namespace tensord::kernels {
namespace {

using gradient::Expr;
using ops::KernelContext;
using ops::TensorMeta;
using ops::Value;
using MaybeTensor = std::optional<Tensor>;

// Samples in memory order. With the weights w, the label y, and p = softmax(scores), the loss of a sample is
//   (1 - smoothing) w_y (-log p_y) + smoothing / classes sum of w_c (-log p_c)
// and its gradient  scale p_c - share w_c - [c = y] own  with
//   own = (1 - smoothing) w_y,  share = smoothing / classes,  scale = own + share sum of w
template <class T>
struct Samples {
  ClassLoss loss;
  Tensor scores, labels, weights;  // held for x, y and w
  const T* x;
  const int64_t* y;
  const T* w;  // null: 1
  double share, weight_sum;

  Samples(const ClassLoss& loss, const Tensor& given, const Tensor& target, const MaybeTensor& weight)
      : loss(loss),
        scores(given.to(dtype_of<T>).contiguous()),
        labels(check_labels(loss, target)),
        weights(weight ? weight->to(dtype_of<T>).contiguous() : Tensor()),
        x(scores.data<T>()),
        y(labels.data<int64_t>()),
        w(weight ? weights.data<T>() : nullptr),
        share(loss.smoothing / static_cast<double>(std::max<int64_t>(1, loss.classes))),
        weight_sum(static_cast<double>(loss.classes)) {
    if (w == nullptr) return;
    weight_sum = 0;
    for (int64_t c = 0; c < loss.classes; ++c) weight_sum += static_cast<double>(w[c]);
  }
  bool is_ignored(int64_t i) const { return y[i] == loss.ignore_index; }
  double weight_of(int64_t i) const {
    if (is_ignored(i)) return 0;
    return w ? static_cast<double>(w[y[i]]) : 1.0;
  }
  // The first score of sample i, and the distance to that of the next class.
  int64_t first(int64_t i) const { return i / loss.inner * loss.classes * loss.inner + i % loss.inner; }
  int64_t step() const { return loss.inner; }
  // Calls fn(first sample, samples) for runs of samples that lie in one form, in fixed parts.
  template <class Fn>
  void for_each_run(double class_ns, Fn&& fn) const {
    constexpr int64_t kRun = 256;
    const int64_t at_once = loss.inner == 1 ? std::clamp<int64_t>(8192 / std::max<int64_t>(1, loss.classes), 1, kRun)
                                            : std::min(kRun, loss.inner);
    const int64_t lines = loss.inner == 1 ? 1 : loss.samples, line = loss.inner == 1 ? loss.samples : loss.inner,
                  runs = (line + at_once - 1) / at_once;
    parallel_for_cost(lines * runs, class_ns * static_cast<double>(at_once * loss.classes),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t r = begin; r < end; ++r) {
                          const int64_t offset = r % runs * at_once;
                          fn(r / runs * line + offset, std::min(at_once, line - offset));
                        }
                      });
  }

  void forward(int64_t reduction, const Tensor& out, const Tensor& moments, const Tensor& total_weight) const;
  double loss_of(int64_t i, double largest, double log_sum) const;
  void backward(int64_t reduction, const Tensor& g, const Tensor& moments, double total_weight, T* dx) const;
};

template <class T>
double Samples<T>::loss_of(int64_t i, double largest, double log_sum) const {
  if (is_ignored(i)) return 0;
  const T* sample = x + first(i);
  const auto nll = [&](int64_t c) { return log_sum - (static_cast<double>(sample[c * step()]) - largest); };
  double value = (1 - loss.smoothing) * weight_of(i) * nll(y[i]);
  if (loss.smoothing > 0) {
    double all = 0;
    for (int64_t c = 0; c < loss.classes; ++c) all += nll(c) * (w ? static_cast<double>(w[c]) : 1.0);
    value += share * all;
  }
  return value;
}

template <class T>
void Samples<T>::forward(int64_t reduction, const Tensor& out, const Tensor& moments,
                         const Tensor& total_weight) const {
  T *largest = moments.data<T>(), *log_sum = largest + loss.count();
  const Tensor losses =
      reduction == kLossNone && out.dtype() == dtype_of<T> ? out : Tensor::empty(Dims{loss.count()}, dtype_of<T>);
  T* to = losses.data<T>();
  for_each_run(0.6, [&](int64_t begin, int64_t count) {
    class_moments(x + first(begin), loss.classes, step(), count, largest + begin, log_sum + begin);
    for (int64_t i = begin; i < begin + count; ++i)
      to[i] = static_cast<T>(loss_of(i, static_cast<double>(largest[i]), static_cast<double>(log_sum[i])));
  });
  double sum = 0, total = 0;
  for (int64_t i = 0; i < loss.count(); ++i) {
    sum += static_cast<double>(to[i]);
    total += weight_of(i);
  }
  total_weight.copy_from(Tensor::scalar(total));
  if (reduction != kLossNone) return out.copy_from(Tensor::scalar(reduction == kLossMean ? sum / total : sum));
  if (!losses.is_same(out)) out.copy_from(ops::call("aten::reshape", losses, out.sizes()));
}

template <class T>
void Samples<T>::backward(int64_t reduction, const Tensor& g, const Tensor& moments, double total_weight, T* dx) const {
  const Tensor gs = g.to(dtype_of<T>).contiguous();
  const T *largest = moments.data<T>(), *log_sum = largest + loss.count(), *incoming = gs.data<T>();
  const double one = reduction == kLossMean ? static_cast<double>(*incoming) / total_weight : 0;
  for_each_run(0.4, [&](int64_t begin, int64_t count) {
    T scale[256], shares[256];
    double own[256];
    for (int64_t k = 0; k < count; ++k) {
      const int64_t i = begin + k;
      const double by = is_ignored(i)            ? 0
                        : reduction == kLossMean ? one
                                                 : static_cast<double>(incoming[reduction == kLossNone ? i : 0]);
      own[k] = is_ignored(i) ? 0 : by * (1 - loss.smoothing) * weight_of(i);
      shares[k] = static_cast<T>(by * share);
      scale[k] = static_cast<T>(own[k] + by * share * weight_sum);
    }
    T* to = dx + first(begin);
    class_slopes(x + first(begin), loss.classes, step(), count, largest + begin, log_sum + begin, scale, shares, w, to);
    for (int64_t k = 0; k < count; ++k) {
      T* sample = dx + first(begin + k);
      if (!is_ignored(begin + k)) {
        sample[y[begin + k] * step()] -= static_cast<T>(own[k]);
      } else {  // also where the scores are not finite
        for (int64_t c = 0; c < loss.classes; ++c) sample[c * step()] = 0;
      }
    }
  });
}

ClassLoss checked(const Tensor& x, const Tensor& target, const MaybeTensor& weight, int64_t reduction, int64_t ignore,
                  double smoothing) {
  check(reduction >= kLossNone && reduction <= kLossSum, reduction, " is not a valid value for reduction");
  ClassLoss loss = make_class_loss(x, target, weight, ignore);
  check(loss.classes > 0 || loss.count() == 0, "there are no classes");
  loss.smoothing = smoothing;
  return loss;
}
DType wide_dtype(const Tensor& x) { return x.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }
template <class Fn>
void with_wide_type(const Tensor& x, Fn&& fn) {
  if (x.dtype() == DType::kFloat64) return fn.template operator()<double>();
  fn.template operator()<float>();
}

// In terms of operators, for the gradient of the gradient. Arguments are those of the backward below.
struct Slopes {
  const std::span<const Value>& v;
  Tensor x = v[1].to_tensor(), target = v[2].to_tensor();
  int64_t dim = x.ndim() == 1 ? 0 : 1;
  double smoothing = v[6].to_float(), share = smoothing / static_cast<double>(std::max<int64_t>(1, x.sizes()[dim]));
  Expr mask, labels;  // of x's sizes but for one class; labels that are ignored are 0

  explicit Slopes(const std::span<const Value>& arguments) : v(arguments) {
    Dims one = x.sizes();
    one[static_cast<size_t>(dim)] = 1;
    const Expr given = Expr(ops::call("aten::reshape", ops::call("aten::to.dtype", target, DType::kInt64), one));
    const Expr kept = given != static_cast<double>(v[5].to_int());
    mask = Expr(ops::call("aten::to.dtype", kept.tensor(), x.dtype()));
    labels = Expr(ops::call("aten::where.self", kept.tensor(), given.tensor(), gradient::zeros_like(given.value)));
  }
  Expr at_label(const Expr& all) const { return Expr(ops::call("aten::gather", all.tensor(), dim, labels.tensor())); }
  Expr sum(const Expr& all) const { return Expr(ops::call("aten::sum.dim_IntList", all.tensor(), Dims{dim}, true)); }
  // The class weights along the classes, or ones.
  Expr weights() const {
    Dims sizes(static_cast<size_t>(x.ndim()), 1);
    sizes[static_cast<size_t>(dim)] = x.sizes()[static_cast<size_t>(dim)];
    if (!v[3].is_tensor()) return Expr(ops::call("aten::ones_like", ops::call("aten::detach", x)));
    return Expr(ops::call("aten::expand", ops::call("aten::reshape", v[3].to_tensor(), sizes), x.sizes()));
  }
};

// The backward is k (A p - B), linear in k = g (over the total weight); dp = p (a - sum(a p)).
std::vector<Value> gradient_of_backward(const ops::GradArgs& args) {
  const auto& v = args.inputs;
  std::vector<Value> out(v.size());
  const Slopes s(v);
  const Expr a = args.grad_outputs[0], p = Expr(ops::call("aten::softmax.int", s.x, s.dim)), w = s.weights();
  const Expr own = s.mask * s.at_label(w) * (1 - s.smoothing), scale = own + s.mask * s.sum(w) * s.share;
  const Expr mean = s.sum(a * p);
  const bool is_mean = v[4].to_int() == kLossMean, is_none = v[4].to_int() == kLossNone;
  if (args.needs(0)) {
    Expr slope = scale * mean - own * s.at_label(a) - s.mask * s.sum(a * w) * s.share;
    if (is_mean) slope = slope / Expr(v[8]);
    const Tensor& g = v[0].to_tensor();
    out[0] =
        gradient::fit_gradient(is_none ? ops::call("aten::reshape", slope.tensor(), g.sizes())
                                       : ops::call("aten::reshape", ops::call("aten::sum", slope.tensor()), g.sizes()),
                               g);
  }
  if (args.needs(1)) {
    Expr k = is_none ? Expr(ops::call("aten::reshape", v[0].to_tensor(), s.mask.tensor().sizes()))
                     : Expr(ops::call("aten::reshape", v[0].to_tensor(), Dims{}));
    if (is_mean) k = k / Expr(v[8]);
    out[1] = gradient::fit_gradient(k * scale * (p * (a - mean)), s.x);
  }
  return out;
}

constexpr const char* kForward = "tensord::cross_entropy";
constexpr const char* kBackward = "tensord::cross_entropy_backward";

// `moments` are the largest score of each sample, and behind them the logarithms of the sums of exponentials.
OP("tensord::cross_entropy(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index, float "
   "label_smoothing) -> (Tensor output, Tensor moments, Tensor total_weight)")
    .infer([](const Tensor& x, const Tensor& target, MaybeTensor weight, int64_t reduction, int64_t ignore,
              double smoothing) {
      const ClassLoss loss = checked(x, target, weight, reduction, ignore, smoothing);
      return std::vector<TensorMeta>{
          {reduction == kLossNone && x.ndim() > 1 ? target.sizes() : Dims{}, x.dtype(), {}, x.device()},
          {Dims{2 * loss.count()}, wide_dtype(x), {}, x.device()},
          {Dims{}, wide_dtype(x), {}, x.device()}};
    })
    .gradient([](const ops::GradArgs& args) {
      const auto& v = args.inputs;
      std::vector<Value> out(v.size());
      if (!args.grad_outputs[0].defined()) return out;
      out[0] = ops::call(kBackward, args.grad_outputs[0], v[0], v[1], v[2], v[3], v[4], v[5], args.outputs[1],
                         args.outputs[2]);
      return out;
    })
    .saves("self, target, weight, result1, result2")
    .reduction();
KERNEL(kForward, kCPU,
       [](const KernelContext&, const Tensor& x, const Tensor& target, MaybeTensor weight, int64_t reduction,
          int64_t ignore, double smoothing, Tensor& out, Tensor& moments, Tensor& total_weight) {
         const ClassLoss loss = checked(x, target, weight, reduction, ignore, smoothing);
         with_wide_type(
             x, [&]<class T>() { Samples<T>(loss, x, target, weight).forward(reduction, out, moments, total_weight); });
       });

OP("tensord::cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, int "
   "ignore_index, float label_smoothing, Tensor moments, Tensor total_weight) -> Tensor")
    .infer([](const Tensor& g, const Tensor& x, const Tensor& target, MaybeTensor weight, int64_t reduction,
              int64_t ignore, double smoothing, const Tensor& moments, const Tensor& total_weight) {
      const ClassLoss loss = checked(x, target, weight, reduction, ignore, smoothing);
      check(g.numel() == (reduction == kLossNone ? loss.count() : 1), "the gradient is of size ", g.sizes());
      check(moments.numel() == 2 * loss.count() && moments.dtype() == wide_dtype(x) && moments.is_contiguous() &&
                total_weight.numel() == 1,
            "the moments are of size ", moments.sizes());
      return TensorMeta{x.sizes(), x.dtype(), {}, x.device()};
    })
    .gradient(gradient_of_backward)
    .saves("grad_output, self, target, weight, total_weight");
KERNEL(
    kBackward, kCPU,
    [](const KernelContext&, const Tensor& g, const Tensor& x, const Tensor& target, MaybeTensor weight,
       int64_t reduction, int64_t ignore, double smoothing, const Tensor& moments, const Tensor& total_weight,
       Tensor& dx) {
      const ClassLoss loss = checked(x, target, weight, reduction, ignore, smoothing);
      if (dx.numel() == 0) return;
      with_wide_type(x, [&]<class T>() {
        const bool is_direct = dx.dtype() == dtype_of<T>;
        const Tensor to = is_direct ? dx : Tensor::empty(dx.sizes(), dtype_of<T>);
        Samples<T>(loss, x, target, weight).backward(reduction, g, moments, total_weight.item_double(), to.data<T>());
        if (!is_direct) dx.copy_from(to);
      });
    });

// A target of the scores' sizes holds probabilities.
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
  Expr products = Expr(ops::call("aten::log_softmax.int", x, dim)) * probabilities;
  if (weight) {
    Dims sizes(static_cast<size_t>(x.ndim()), 1);
    sizes[static_cast<size_t>(dim)] = classes;
    products = products * Expr(ops::call("aten::reshape", *weight, sizes));
  }
  if (reduction == kLossNone) {
    return (-Expr(ops::call("aten::sum.dim_IntList", products.tensor(), Dims{dim}))).tensor();
  }
  const Expr sum = -Expr(ops::call("aten::sum", products.tensor()));
  check(reduction == kLossMean || reduction == kLossSum, reduction, " is not a valid value for reduction");
  return reduction == kLossSum ? sum.tensor()
                               : (sum / (static_cast<double>(x.numel()) / static_cast<double>(classes))).tensor();
}

OP("aten::cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100, "
   "float label_smoothing=0.) -> Tensor")
    .direct([](const Tensor& x, const Tensor& target, MaybeTensor weight, int64_t reduction, int64_t ignore,
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
