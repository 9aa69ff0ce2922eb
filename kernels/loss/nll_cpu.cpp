// The loops of nll_loss, and the check of labels.
#include <algorithm>

#include "core/ops/op.h"
#include "kernels/loss/class.h"
#include "kernels/loss/loss.h"

namespace tensord::kernels {

Tensor check_labels(const ClassLoss& loss, const Tensor& target) {
  const Tensor labels = target.to(DType::kInt64).contiguous();
  const int64_t* y = labels.data<int64_t>();
  for (int64_t i = 0; i < labels.numel(); ++i) {
    if (y[i] == loss.ignore_index || (y[i] >= 0 && y[i] < loss.classes)) continue;
    fail(ErrorCode::kOutOfRange, "Target ", y[i], " is out of bounds.");
  }
  return labels;
}

namespace {

using ops::KernelContext;
using MaybeTensor = std::optional<Tensor>;

template <class Fn>
void with_nll_type(DType dtype, Fn&& fn) {
  if (dtype == DType::kFloat64) return fn.template operator()<double>();
  fn.template operator()<float>();
}

template <class T>
void nll_forward(const ClassLoss& loss, const Tensor& x, const Tensor& target, const MaybeTensor& weight,
                 int64_t reduction, const Tensor& out, const Tensor& total_weight) {
  const Tensor labels = check_labels(loss, target), xs = dense<T>(x), ws = weight ? dense<T>(*weight) : Tensor();
  const Tensor losses = reduction == kLossNone ? Tensor::empty(out.sizes(), dtype_of<T>) : Tensor();
  const int64_t* y = labels.data<int64_t>();
  const T *from = xs.data<T>(), *w = weight ? ws.data<T>() : nullptr;
  double sum = 0, total = 0;
  for (int64_t i = 0; i < loss.count(); ++i) {
    const bool ignored = y[i] == loss.ignore_index;
    const double by = ignored ? 0 : w ? static_cast<double>(w[y[i]]) : 1.0;
    const int64_t at = (i / loss.inner * loss.classes + y[i]) * loss.inner + i % loss.inner;
    const double value = ignored ? 0 : -by * static_cast<double>(from[at]);
    if (losses.defined()) losses.data<T>()[i] = static_cast<T>(value);
    sum += value;
    total += by;
  }
  if (losses.defined()) {
    out.copy_from(losses);
    total = 0;
  } else {
    out.copy_from(Tensor::scalar(reduction == kLossMean ? sum / total : sum));
  }
  total_weight.copy_from(Tensor::scalar(total));
}

template <class T>
void nll_backward(const ClassLoss& loss, const Tensor& g, const Tensor& target, const MaybeTensor& weight,
                  int64_t reduction, const Tensor& total_weight, const Tensor& out) {
  const Tensor labels = check_labels(loss, target), gs = dense<T>(g), ws = weight ? dense<T>(*weight) : Tensor();
  const Tensor wide = out.dtype() == dtype_of<T> ? out : Tensor::empty(out.sizes(), dtype_of<T>);
  const int64_t* y = labels.data<int64_t>();
  const T* w = weight ? ws.data<T>() : nullptr;
  T* to = wide.data<T>();
  std::fill(to, to + wide.numel(), T(0));
  double one = 0;
  if (reduction != kLossNone) one = static_cast<double>(*gs.data<T>());
  if (reduction == kLossMean) one /= total_weight.item_double();
  for (int64_t i = 0; i < loss.count(); ++i) {
    if (y[i] == loss.ignore_index) continue;
    const double incoming = reduction == kLossNone ? static_cast<double>(gs.data<T>()[i]) : one;
    to[(i / loss.inner * loss.classes + y[i]) * loss.inner + i % loss.inner] =
        static_cast<T>(-incoming * (w ? static_cast<double>(w[y[i]]) : 1.0));
  }
  if (!wide.is_same(out)) out.copy_from(wide);
}

void nll_forward_kernel(const KernelContext&, const Tensor& x, const Tensor& target, MaybeTensor weight,
                        int64_t reduction, int64_t ignore, Tensor& out, Tensor& total_weight) {
  const ClassLoss loss = make_class_loss(x, target, weight, ignore);
  with_nll_type(x.dtype(), [&]<class T>() { nll_forward<T>(loss, x, target, weight, reduction, out, total_weight); });
}

void nll_backward_kernel(const KernelContext&, const Tensor& g, const Tensor& x, const Tensor& target,
                         MaybeTensor weight, int64_t reduction, int64_t ignore, const Tensor& total_weight,
                         Tensor& out) {
  const ClassLoss loss = make_class_loss(x, target, weight, ignore);
  with_nll_type(x.dtype(), [&]<class T>() { nll_backward<T>(loss, g, target, weight, reduction, total_weight, out); });
}

IMPL("aten::nll_loss_forward", kCPU, nll_forward_kernel);
IMPL("aten::nll_loss2d_forward", kCPU, nll_forward_kernel);
IMPL("aten::nll_loss_backward", kCPU, nll_backward_kernel);
IMPL("aten::nll_loss2d_backward", kCPU, nll_backward_kernel);

}  // namespace
}  // namespace tensord::kernels
