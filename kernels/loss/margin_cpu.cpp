// The loops of multi_margin_loss and multilabel_margin_loss.
#include "kernels/loss/margin.h"

#include <algorithm>
#include <vector>

#include "core/ops/op.h"
#include "kernels/loss/loss.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::Scalar;
using MaybeTensor = std::optional<Tensor>;

// The factor of a row's loss: 1 over the classes, and over the rows for the mean.
double share_of(const MarginRows& rows, int64_t reduction) {
  const double share = 1.0 / static_cast<double>(rows.classes);
  return reduction == kLossMean ? share / static_cast<double>(rows.count) : share;
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
    const MarginRows rows("multi_margin_loss", x, labels, false);
    for (int64_t i = 0; i < rows.count; ++i) {
      const int64_t y = label(i);
      check(y >= 0 && y < rows.classes, "target out of range");
    }
  }
  int64_t label(int64_t row) const { return target.data<int64_t>()[row]; }
  double weight_of(int64_t row) const { return weight.defined() ? weight.data<double>()[label(row)] : 1.0; }
  double violation(double right, double wrong) const { return margin - right + wrong; }
};

void multi_margin_backward(const KernelContext&, const Tensor& g, const Tensor& x, const Tensor& target, Scalar p,
                           Scalar margin, MaybeTensor weight, int64_t reduction, Tensor& out) {
  const MultiMargin loss(x, target, p, margin, weight, reduction);
  const MarginRows rows("multi_margin_loss", x, target, false);
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

IMPL("aten::multi_margin_loss", kCPU,
     [](const KernelContext&, const Tensor& x, const Tensor& target, Scalar p, Scalar margin, MaybeTensor weight,
        int64_t reduction, Tensor& out) {
       const MultiMargin loss(x, target, p, margin, weight, reduction);
       const MarginRows rows("multi_margin_loss", x, target, false);
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

IMPL("aten::multi_margin_loss_backward", kCPU, multi_margin_backward);

// --- multilabel_margin_loss: sum over right classes y and wrong ones c of max(0, 1 - x_y + x_c) / classes. A row's
// labels end before the first negative one.

template <class Fn>
void for_each_label(const int64_t* labels, int64_t classes, Fn&& fn) {
  for (int64_t k = 0; k < classes && labels[k] >= 0; ++k) fn(labels[k]);
}
void check_margin_labels(const Tensor& labels, int64_t classes) {
  for (int64_t i = 0; i < labels.numel(); ++i) {
    const int64_t y = labels.data<int64_t>()[i];
    check(y >= -1 && y < classes, "target out of range");
  }
}

void multilabel_margin(const KernelContext&, const Tensor& x, const Tensor& target, int64_t reduction, Tensor& out,
                       Tensor& is_target) {
  const MarginRows rows("multilabel_margin_loss", x, target, true);
  const Tensor xs = dense<double>(x), labels = target.contiguous(),
               right = Tensor::empty(is_target.sizes(), DType::kFloat64);
  check_margin_labels(labels, rows.classes);
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
IMPL("aten::multilabel_margin_loss_forward", kCPU, multilabel_margin);

void multilabel_margin_backward(const KernelContext&, const Tensor& g, const Tensor& x, const Tensor& target,
                                int64_t reduction, const Tensor& is_target, Tensor& out) {
  const MarginRows rows("multilabel_margin_loss", x, target, true);
  const Tensor xs = dense<double>(x), labels = target.contiguous(), right = dense<double>(is_target),
               incoming = dense<double>(g), wide = Tensor::empty(x.sizes(), DType::kFloat64);
  check_margin_labels(labels, rows.classes);
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
IMPL("aten::multilabel_margin_loss_backward", kCPU, multilabel_margin_backward);

}  // namespace
}  // namespace tensord::kernels
