// Losses of labeled samples on a CUDA device.
#include <optional>

#include "core/tensor/device_copy.h"
#include "kernels/base/lines.h"
#include "kernels/cuda/launch.h"
#include "kernels/loss/class.h"
#include "kernels/loss/ctc.h"
#include "kernels/loss/loss.h"
#include "kernels/loss/margin.h"
#include "kernels/reduce/reduce.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::KernelContext;
using ops::Scalar;
using MaybeTensor = std::optional<Tensor>;

int8_t loss_code(const Tensor& t) { return static_cast<int8_t>(t.dtype()); }

Tensor wide_numbers(const Dims& sizes, Device device) { return Tensor::empty(sizes, DType::kFloat64, device); }

// The sum of all elements, in double.
Tensor sum_of_all(const Tensor& x) {
  const Tensor out = wide_numbers(Dims(x.sizes().size(), 1), x.device());
  run_reduction({.compute = x.dtype()}, x, out);
  return out;
}

// --- nll_loss and cross_entropy

// A job over dense copies, which this object keeps alive.
struct ClassLossCall {
  ClassLossJob job;
  Tensor scores, labels, weight;

  ClassLossCall(const KernelContext& context, const ClassLoss& loss, const Tensor& x, const Tensor& target,
                const MaybeTensor& given_weight, int64_t reduction)
      : scores(x.is_meta() ? Tensor() : x.contiguous()),
        labels(target.contiguous()),
        weight(given_weight ? given_weight->contiguous() : Tensor()) {
    job.samples = loss.samples, job.classes = loss.classes, job.inner = loss.inner;
    job.ignore_index = loss.ignore_index;
    job.smoothing = loss.smoothing;
    job.is_reduced = reduction != kLossNone;
    job.is_mean = reduction == kLossMean;
    job.loop = static_cast<int8_t>(loop_dtype(x.dtype()));
    job.dtype = loss_code(x), job.label_dtype = loss_code(target);
    if (scores) job.scores = scores.raw_data();  // nll_loss_backward gets only their shape
    job.labels = labels.raw_data();
    if (weight) job.weight = weight.raw_data(), job.weight_dtype = loss_code(weight);
    job.errors = errors_of(context);
  }

  void forward(const KernelContext& context, const Tensor& out, const Tensor& total_weight) {
    const Tensor losses = wide_numbers(Dims{std::max<int64_t>(1, job.samples * job.inner)}, context.device);
    const Tensor dense = out.is_contiguous() ? out : Tensor::empty(out.sizes(), out.dtype(), out.device());
    job.losses = losses.raw_data();
    job.out = dense.raw_data(), job.out_dtype = loss_code(out);
    job.total_weight = total_weight.raw_data(), job.total_dtype = loss_code(total_weight);
    launch(context, &KernelTable::class_loss, job);
    if (!dense.is_same(out)) out.copy_from(dense);
  }
  void backward(const KernelContext& context, const Tensor& g, const Tensor& total_weight, const Tensor& dx) {
    if (dx.numel() == 0) return;
    const Tensor incoming = g.contiguous();
    const Tensor dense = dx.is_contiguous() ? dx : Tensor::empty(dx.sizes(), dx.dtype(), dx.device());
    job.is_backward = true;
    job.g = incoming.raw_data(), job.g_dtype = loss_code(g);
    job.out = dense.raw_data(), job.out_dtype = loss_code(dx);
    job.total_weight = total_weight.raw_data(), job.total_dtype = loss_code(total_weight);
    launch(context, &KernelTable::class_loss, job);
    if (!dense.is_same(dx)) dx.copy_from(dense);
  }
};

void nll_forward_cuda(const KernelContext& context, const Tensor& x, const Tensor& target, MaybeTensor weight,
                      int64_t reduction, int64_t ignore, Tensor& out, Tensor& total_weight) {
  ClassLossCall call(context, make_class_loss(x, target, weight, ignore), x, target, weight, reduction);
  call.job.keeps_total = reduction != kLossNone;
  call.forward(context, out, total_weight);
}
void nll_backward_cuda(const KernelContext& context, const Tensor& g, const Tensor& x, const Tensor& target,
                       MaybeTensor weight, int64_t reduction, int64_t ignore, const Tensor& total_weight, Tensor& out) {
  ClassLossCall call(context, make_class_loss(x, target, weight, ignore), x, target, weight, reduction);
  call.backward(context, g, total_weight, out);
}
IMPL("aten::nll_loss_forward", kCUDA, nll_forward_cuda);
IMPL("aten::nll_loss2d_forward", kCUDA, nll_forward_cuda);
IMPL("aten::nll_loss_backward", kCUDA, nll_backward_cuda);
IMPL("aten::nll_loss2d_backward", kCUDA, nll_backward_cuda);

IMPL("tensord::cross_entropy", kCUDA,
     [](const KernelContext& context, const Tensor& x, const Tensor& target, MaybeTensor weight, int64_t reduction,
        int64_t ignore, double smoothing, Tensor& out, Tensor& moments, Tensor& total_weight) {
       const ClassLoss loss = make_cross_entropy(x, target, weight, reduction, ignore, smoothing);
       ClassLossCall call(context, loss, x, target, weight, reduction);
       call.job.is_entropy = true;
       call.job.moments = moments.raw_data();
       call.forward(context, out, total_weight);
     });
IMPL("tensord::cross_entropy_backward", kCUDA,
     [](const KernelContext& context, const Tensor& g, const Tensor& x, const Tensor& target, MaybeTensor weight,
        int64_t reduction, int64_t ignore, double smoothing, const Tensor& moments, const Tensor& total_weight,
        Tensor& dx) {
       const ClassLoss loss = make_cross_entropy(x, target, weight, reduction, ignore, smoothing);
       ClassLossCall call(context, loss, x, target, weight, reduction);
       call.job.is_entropy = true;
       call.job.moments = moments.raw_data();
       const Tensor weight_sum = weight && smoothing > 0 ? sum_of_all(call.weight) : Tensor();
       if (weight_sum) call.job.weight_sum = weight_sum.raw_data();
       call.backward(context, g, total_weight, dx);
     });

// --- margins

struct MarginCall {
  MarginJob job;
  Tensor scores, labels, weight;

  MarginCall(const KernelContext& context, const MarginRows& rows, const Tensor& x, const Tensor& target,
             int64_t reduction)
      : scores(dense<double>(x)), labels(dense<int64_t>(target)) {
    job.rows = rows.count, job.classes = rows.classes;
    job.is_reduced = reduction != kLossNone;
    job.share = 1.0 / static_cast<double>(rows.classes);
    if (reduction == kLossMean) job.share /= static_cast<double>(rows.count);
    job.scores = scores.raw_data(), job.labels = labels.raw_data();
    job.errors = errors_of(context);
  }
  void set_margin(const Scalar& p, const Scalar& margin, const MaybeTensor& given) {
    job.power = p.to_double(), job.margin = margin.to_double();
    if (given) weight = dense<double>(*given), job.weight = weight.raw_data();
  }

  void forward(const KernelContext& context, const Tensor& out) {
    const Tensor losses = wide_numbers(Dims{job.rows}, context.device);
    job.out = losses.raw_data();
    if (job.rows > 0) launch(context, &KernelTable::margin_loss, job);
    if (!job.is_reduced) return out.copy_from(losses.as_view(out.sizes(), out.ndim() == 0 ? Dims{} : Dims{1}, 0));
    const Tensor sum = sum_of_all(losses);
    out.copy_from(sum.as_view(out.sizes(), Dims(out.sizes().size(), 1), 0));
  }
  void backward(const KernelContext& context, const Tensor& g, const Tensor& out) {
    const Tensor incoming = dense<double>(g), wide = wide_numbers(out.sizes(), context.device);
    zero_elements(wide);
    job.is_backward = true;
    job.g = incoming.raw_data(), job.out = wide.raw_data();
    if (job.rows > 0) launch(context, &KernelTable::margin_loss, job);
    out.copy_from(wide);
  }
};

IMPL("aten::multi_margin_loss", kCUDA,
     [](const KernelContext& context, const Tensor& x, const Tensor& target, Scalar p, Scalar margin,
        MaybeTensor weight, int64_t reduction, Tensor& out) {
       MarginCall call(context, MarginRows("multi_margin_loss", x, target, false), x, target, reduction);
       call.set_margin(p, margin, weight);
       call.forward(context, out);
     });
IMPL("aten::multi_margin_loss_backward", kCUDA,
     [](const KernelContext& context, const Tensor& g, const Tensor& x, const Tensor& target, Scalar p, Scalar margin,
        MaybeTensor weight, int64_t reduction, Tensor& out) {
       MarginCall call(context, MarginRows("multi_margin_loss", x, target, false), x, target, reduction);
       call.set_margin(p, margin, weight);
       call.backward(context, g, out);
     });
IMPL("aten::multilabel_margin_loss_forward", kCUDA,
     [](const KernelContext& context, const Tensor& x, const Tensor& target, int64_t reduction, Tensor& out,
        Tensor& is_target) {
       MarginCall call(context, MarginRows("multilabel_margin_loss", x, target, true), x, target, reduction);
       const Tensor is_right = wide_numbers(is_target.sizes(), context.device);
       zero_elements(is_right);
       call.job.has_lists = true;
       call.job.is_right = is_right.raw_data();
       call.forward(context, out);
       is_target.copy_from(is_right);
     });
IMPL("aten::multilabel_margin_loss_backward", kCUDA,
     [](const KernelContext& context, const Tensor& g, const Tensor& x, const Tensor& target, int64_t reduction,
        const Tensor& is_target, Tensor& out) {
       MarginCall call(context, MarginRows("multilabel_margin_loss", x, target, true), x, target, reduction);
       const Tensor is_right = dense<double>(is_target);
       call.job.has_lists = true;
       call.job.is_right = is_right.raw_data();
       call.backward(context, g, out);
     });

// --- ctc_loss

struct CtcCall {
  CtcJob job;
  Tensor log_probs, labels, lengths;

  CtcCall(const KernelContext& context, const CtcBatch& batch, const Tensor& given, const Tensor& targets)
      : log_probs(dense<double>(given)), labels(dense<int64_t>(targets)) {
    const Tensor here = Tensor::empty(Dims{batch.count, 3}, DType::kInt64);
    for (int64_t n = 0; n < batch.count; ++n) {
      int64_t* const row = here.data<int64_t>() + 3 * n;
      const auto i = static_cast<size_t>(n);
      row[0] = batch.input_lengths[i], row[1] = batch.target_lengths[i], row[2] = batch.first[i];
    }
    lengths = here.to(context.device);
    job.steps = batch.steps, job.count = batch.count, job.classes = batch.classes, job.states = batch.states;
    job.blank = batch.blank;
    job.log_probs = log_probs.raw_data(), job.labels = labels.raw_data(), job.lengths = lengths.raw_data();
    job.errors = errors_of(context);
  }
};

IMPL("aten::_ctc_loss", kCUDA,
     [](const KernelContext& context, const Tensor& log_probs, const Tensor& targets, const IntList& input_lengths,
        const IntList& target_lengths, int64_t blank, bool, Tensor& losses, Tensor& log_alpha) {
       CtcCall call(context, CtcBatch(log_probs, targets, input_lengths, target_lengths, blank), log_probs, targets);
       const Tensor loss = wide_numbers(losses.sizes(), context.device),
                    alpha = wide_numbers(log_alpha.sizes(), context.device);
       call.job.losses = loss.raw_data(), call.job.alpha = alpha.raw_data();
       if (call.job.count > 0) launch(context, &KernelTable::ctc_loss, call.job);
       losses.copy_from(loss);
       log_alpha.copy_from(alpha);
     });
IMPL("aten::_ctc_loss_backward", kCUDA,
     [](const KernelContext& context, const Tensor& g, const Tensor& log_probs, const Tensor& targets,
        const IntList& input_lengths, const IntList& target_lengths, const Tensor& losses, const Tensor& log_alpha,
        int64_t blank, bool zero_infinity, Tensor& out) {
       if (out.numel() == 0) return;
       CtcCall call(context, CtcBatch(log_probs, targets, input_lengths, target_lengths, blank), log_probs, targets);
       const Tensor incoming = dense<double>(g), loss = dense<double>(losses), alpha = dense<double>(log_alpha),
                    beta = wide_numbers(alpha.sizes(), context.device), dx = wide_numbers(out.sizes(), context.device);
       call.job.is_backward = true;
       call.job.zero_infinity = zero_infinity;
       call.job.g = incoming.raw_data(), call.job.losses = loss.raw_data(), call.job.alpha = alpha.raw_data();
       call.job.beta = beta.raw_data(), call.job.out = dx.raw_data();
       launch(context, &KernelTable::ctc_loss, call.job);
       out.copy_from(dx);
     });

}  // namespace
}  // namespace tensord::kernels
