// multi_margin_loss and multilabel_margin_loss: how far the scores of wrong classes come near those of right ones.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/fused/gradient_expr.h"
#include "kernels/loss/loss.h"

namespace tensord::kernels {
namespace {

using gradient::Expr;
using ops::KernelContext;
using ops::Scalar;
using ops::TensorMeta;
using ops::Value;
using MaybeTensor = std::optional<Tensor>;

void check_reduction(int64_t reduction) {
  check(reduction >= kLossNone && reduction <= kLossSum, reduction, " is not a valid value for reduction");
}
template <class Fn>
void with_wide_type(const Tensor& x, Fn&& fn) {
  if (x.dtype() == DType::kFloat64) return fn.template operator()<double>();
  fn.template operator()<float>();
}

// Rows of scores. A single one may come without its dimension, and with a label of none or one.
struct Rows {
  int64_t count, classes;

  Rows(const char* op, const Tensor& x, const Tensor& target, bool has_label_lists) {
    if (!is_floating(x.dtype())) fail_dtype(op, x.dtype());
    check(target.dtype() == DType::kInt64, "expected scalar type Long but found ", name_of(target.dtype()));
    check(x.ndim() <= 2 && (x.ndim() < 2 || x.sizes()[1] > 0),
          "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ", x.sizes());
    count = x.ndim() < 2 ? 1 : x.sizes()[0];
    classes = x.ndim() == 0 ? 1 : x.sizes().back();
    const bool fits = has_label_lists ? target.ndim() == x.ndim() && target.sizes() == x.sizes()
                                      : target.ndim() <= 1 && target.numel() == count;
    check(fits, "inconsistent target size, got: ", target.sizes());
  }
};

Dims loss_sizes(const Rows& rows, const Tensor& x, int64_t reduction) {
  return reduction == kLossNone && x.ndim() == 2 ? Dims{rows.count} : Dims{};
}
// What a row's loss is multiplied with: 1 over the classes, and over the rows for the mean.
double share_of(const Rows& rows, int64_t reduction) {
  const double share = 1.0 / static_cast<double>(rows.classes);
  return reduction == kLossMean ? share / static_cast<double>(rows.count) : share;
}

template <class T>
Tensor dense(const Tensor& x) {
  return x.to(dtype_of<T>).contiguous();
}
void store(const std::vector<double>& losses, int64_t reduction, const Tensor& out) {
  const Tensor wide = Tensor::empty(out.sizes(), DType::kFloat64);
  double sum = 0;
  for (double loss : losses) sum += loss;
  if (reduction == kLossNone)
    std::copy(losses.begin(), losses.end(), wide.data<double>());
  else
    *wide.data<double>() = sum;
  out.copy_from(wide);
}

// --- multi_margin_loss: sum over wrong classes of max(0, margin - x_y + x_c)^p w_y / classes

struct MultiMargin {
  double p, margin;
  int64_t reduction;
  Tensor target, weight;

  MultiMargin(const Tensor& x, const Tensor& labels, const Scalar& power, const Scalar& margin,
              const MaybeTensor& weight, int64_t reduction)
      : p(power.to_double()),
        margin(margin.to_double()),
        reduction(reduction),
        target(labels.contiguous()),
        weight(weight ? weight->to(DType::kFloat64).contiguous() : Tensor()) {
    const Rows rows("multi_margin_loss", x, labels, false);
    for (int64_t i = 0; i < rows.count; ++i) {
      const int64_t y = label(i);
      check(y >= 0 && y < rows.classes, "target out of range");
    }
  }
  int64_t label(int64_t row) const { return target.data<int64_t>()[row]; }
  double weight_of(int64_t row) const { return weight.defined() ? weight.data<double>()[label(row)] : 1.0; }
  double violation(double right, double wrong) const { return margin - right + wrong; }
};

TensorMeta infer_multi_margin(const Tensor& x, const Tensor& target, const Scalar& p, const MaybeTensor& weight,
                              int64_t reduction) {
  const Rows rows("multi_margin_loss", x, target, false);
  check(p.to_double() == 1 || p.to_double() == 2, "only p == 1 and p == 2 supported");
  check(!weight || (weight->ndim() <= 1 && weight->numel() == rows.classes), "inconsistent weight size");
  check_reduction(reduction);
  return {loss_sizes(rows, x, reduction), x.dtype(), {}, x.device()};
}

void multi_margin_backward(const KernelContext&, const Tensor& g, const Tensor& x, const Tensor& target, Scalar p,
                           Scalar margin, MaybeTensor weight, int64_t reduction, Tensor& out) {
  const MultiMargin loss(x, target, p, margin, weight, reduction);
  const Rows rows("multi_margin_loss", x, target, false);
  const Tensor incoming = dense<double>(g), wide = Tensor::empty(x.sizes(), DType::kFloat64), xs = dense<double>(x);
  for (int64_t i = 0; i < rows.count; ++i) {
    const double* from = xs.data<double>() + i * rows.classes;
    double* to = wide.data<double>() + i * rows.classes;
    const double by =
        incoming.data<double>()[reduction == kLossNone ? i : 0] * share_of(rows, reduction) * loss.weight_of(i);
    double right = 0;
    for (int64_t c = 0; c < rows.classes; ++c) {
      const double z = loss.violation(from[loss.label(i)], from[c]);
      to[c] = c == loss.label(i) || z <= 0 ? 0 : by * (loss.p == 1 ? 1 : 2 * z);
      right -= to[c];
    }
    to[loss.label(i)] = right;
  }
  out.copy_from(wide);
}

OP("aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int "
   "reduction=1) -> Tensor")
    .infer([](const Tensor& x, const Tensor& target, Scalar p, Scalar, MaybeTensor weight, int64_t reduction) {
      return infer_multi_margin(x, target, p, weight, reduction);
    })
    .gradient(gradient::of_first([](const ops::GradArgs& args, const Tensor& g) {
      const auto& v = args.inputs;
      return ops::call("aten::multi_margin_loss_backward", g, v[0], v[1], v[2], v[3], v[4], v[5]);
    }))
    .saves("self, target, weight");
KERNEL("aten::multi_margin_loss", kCPU,
       [](const KernelContext&, const Tensor& x, const Tensor& target, Scalar p, Scalar margin, MaybeTensor weight,
          int64_t reduction, Tensor& out) {
         const MultiMargin loss(x, target, p, margin, weight, reduction);
         const Rows rows("multi_margin_loss", x, target, false);
         const Tensor xs = dense<double>(x);
         std::vector<double> losses(static_cast<size_t>(rows.count), 0.0);
         for (int64_t i = 0; i < rows.count; ++i) {
           const double* from = xs.data<double>() + i * rows.classes;
           for (int64_t c = 0; c < rows.classes; ++c) {
             const double z = loss.violation(from[loss.label(i)], from[c]);
             if (c != loss.label(i) && z > 0) losses[static_cast<size_t>(i)] += loss.p == 1 ? z : z * z;
           }
           losses[static_cast<size_t>(i)] *= loss.weight_of(i) * share_of(rows, reduction);
         }
         store(losses, reduction, out);
       });

// As in PyTorch it has no gradient of its own.
OP("aten::multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, Tensor? "
   "weight=None, int reduction=1) -> Tensor")
    .infer([](const Tensor& g, const Tensor& x, const Tensor& target, Scalar p, Scalar, MaybeTensor weight,
              int64_t reduction) {
      const TensorMeta loss = infer_multi_margin(x, target, p, weight, reduction);
      check(g.numel() == checked_numel(loss.sizes), "the gradient is of size ", g.sizes());
      return TensorMeta{x.sizes(), x.dtype(), {}, x.device()};
    });
KERNEL("aten::multi_margin_loss_backward", kCPU, multi_margin_backward);

// --- multilabel_margin_loss: sum over right classes y and wrong ones c of max(0, 1 - x_y + x_c) / classes. A row's
// labels end before the first negative one.

template <class Fn>
void for_each_label(const int64_t* labels, int64_t classes, Fn&& fn) {
  for (int64_t k = 0; k < classes && labels[k] >= 0; ++k) fn(labels[k]);
}
void check_labels(const Tensor& labels, int64_t classes) {
  for (int64_t i = 0; i < labels.numel(); ++i) {
    const int64_t y = labels.data<int64_t>()[i];
    check(y >= -1 && y < classes, "target out of range");
  }
}

OP("aten::multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor "
   "is_target)")
    .infer([](const Tensor& x, const Tensor& target, int64_t reduction) {
      const Rows rows("multilabel_margin_loss", x, target, true);
      check_reduction(reduction);
      return std::vector<TensorMeta>{{loss_sizes(rows, x, reduction), x.dtype(), {}, x.device()},
                                     {target.sizes(), x.dtype(), {}, x.device()}};
    })
    .gradient(gradient::of_first([](const ops::GradArgs& args, const Tensor& g) {
      return ops::call("aten::multilabel_margin_loss_backward", g, args.inputs[0], args.inputs[1], args.inputs[2],
                       args.outputs[1]);
    }))
    .saves("self, target, result1");
void multilabel_margin(const KernelContext&, const Tensor& x, const Tensor& target, int64_t reduction, Tensor& out,
                       Tensor& is_target) {
  const Rows rows("multilabel_margin_loss", x, target, true);
  const Tensor xs = dense<double>(x), labels = target.contiguous(),
               right = Tensor::empty(is_target.sizes(), DType::kFloat64);
  check_labels(labels, rows.classes);
  std::vector<double> losses(static_cast<size_t>(rows.count), 0.0);
  std::fill_n(right.data<double>(), right.numel(), 0.0);
  for (int64_t i = 0; i < rows.count; ++i) {
    const double* from = xs.data<double>() + i * rows.classes;
    double* is_right = right.data<double>() + i * rows.classes;
    const int64_t* y = labels.data<int64_t>() + i * rows.classes;
    for_each_label(y, rows.classes, [&](int64_t label) { is_right[label] = 1; });
    for_each_label(y, rows.classes, [&](int64_t label) {
      for (int64_t c = 0; c < rows.classes; ++c) {
        if (is_right[c] == 0) losses[static_cast<size_t>(i)] += std::max(0.0, 1 - from[label] + from[c]);
      }
    });
    losses[static_cast<size_t>(i)] *= share_of(rows, reduction);
  }
  store(losses, reduction, out);
  is_target.copy_from(right);
}
KERNEL("aten::multilabel_margin_loss_forward", kCPU, multilabel_margin);

OP("aten::multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor "
   "is_target) -> Tensor")
    .infer([](const Tensor& g, const Tensor& x, const Tensor& target, int64_t reduction, const Tensor& is_target) {
      const Rows rows("multilabel_margin_loss", x, target, true);
      check(g.numel() == checked_numel(loss_sizes(rows, x, reduction)), "the gradient is of size ", g.sizes());
      check(is_target.numel() == x.numel(), "is_target is of size ", is_target.sizes());
      return TensorMeta{x.sizes(), x.dtype(), {}, x.device()};
    });
void multilabel_margin_backward(const KernelContext&, const Tensor& g, const Tensor& x, const Tensor& target,
                                int64_t reduction, const Tensor& is_target, Tensor& out) {
  const Rows rows("multilabel_margin_loss", x, target, true);
  const Tensor xs = dense<double>(x), labels = target.contiguous(), right = dense<double>(is_target),
               incoming = dense<double>(g), wide = Tensor::empty(x.sizes(), DType::kFloat64);
  check_labels(labels, rows.classes);
  std::fill_n(wide.data<double>(), wide.numel(), 0.0);
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t offset = i * rows.classes;
    const double *from = xs.data<double>() + offset, *is_right = right.data<double>() + offset;
    double* to = wide.data<double>() + offset;
    const double by = incoming.data<double>()[reduction == kLossNone ? i : 0] * share_of(rows, reduction);
    for_each_label(labels.data<int64_t>() + offset, rows.classes, [&](int64_t label) {
      for (int64_t c = 0; c < rows.classes; ++c) {
        if (is_right[c] != 0 || 1 - from[label] + from[c] <= 0) continue;
        to[c] += by;
        to[label] -= by;
      }
    });
  }
  out.copy_from(wide);
}
KERNEL("aten::multilabel_margin_loss_backward", kCPU, multilabel_margin_backward);

OP("aten::multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
    .direct([](const Tensor& x, const Tensor& target, int64_t reduction) {
      return ops::call("aten::multilabel_margin_loss_forward", x, target, reduction);
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels
