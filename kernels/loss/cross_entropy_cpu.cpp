// The loops of cross_entropy_loss with labels, over runs of samples.
#include <algorithm>

#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/loss/class.h"
#include "kernels/loss/loss.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using MaybeTensor = std::optional<Tensor>;

// Samples in memory order. With the weights w, the label y, and p = softmax(scores), the loss of a sample is
//   (1 - smoothing) w_y (-log p_y) + smoothing / classes sum of w_c (-log p_c)
// and its gradient  scale p_c - share w_c - [c = y] own  with
//   own = (1 - smoothing) w_y,  share = smoothing / classes,  scale = own + share sum of w
template <class T>
struct Samples {
  ClassLoss loss;
  Tensor scores, labels, weights;  // kept alive for x, y and w
  const T* x;
  const int64_t* y;
  const T* w;  // null stands for ones
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
  // Calls fn(first sample, samples) for runs of samples of one layout; the parts are fixed.
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
  if (!losses.is_same(out)) out.copy_from(ops::reshape(losses, out.sizes()));
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

template <class Fn>
void with_wide_type(const Tensor& x, Fn&& fn) {
  if (x.dtype() == DType::kFloat64) return fn.template operator()<double>();
  fn.template operator()<float>();
}

IMPL("tensord::cross_entropy", kCPU,
     [](const KernelContext&, const Tensor& x, const Tensor& target, MaybeTensor weight, int64_t reduction,
        int64_t ignore, double smoothing, Tensor& out, Tensor& moments, Tensor& total_weight) {
       const ClassLoss loss = make_cross_entropy(x, target, weight, reduction, ignore, smoothing);
       with_wide_type(
           x, [&]<class T>() { Samples<T>(loss, x, target, weight).forward(reduction, out, moments, total_weight); });
     });

IMPL("tensord::cross_entropy_backward", kCPU,
     [](const KernelContext&, const Tensor& g, const Tensor& x, const Tensor& target, MaybeTensor weight,
        int64_t reduction, int64_t ignore, double smoothing, const Tensor& moments, const Tensor& total_weight,
        Tensor& dx) {
       const ClassLoss loss = make_cross_entropy(x, target, weight, reduction, ignore, smoothing);
       if (dx.numel() == 0) return;
       with_wide_type(x, [&]<class T>() {
         const bool is_direct = dx.dtype() == dtype_of<T>;
         const Tensor to = is_direct ? dx : Tensor::empty(dx.sizes(), dtype_of<T>);
         Samples<T>(loss, x, target, weight).backward(reduction, g, moments, total_weight.item_double(), to.data<T>());
         if (!is_direct) dx.copy_from(to);
       });
     });

}  // namespace
}  // namespace tensord::kernels
