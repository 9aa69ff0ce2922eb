// ctc_loss: the likelihood of a label sequence over all its alignments with blanks in between (Graves et al.,
// "Connectionist Temporal Classification", 2006). A target of S labels has 2 S + 1 states, blanks at the even ones.
#include <algorithm>
#include <limits>
#include <vector>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/base/numbers.h"
#include "kernels/expr/expr.h"
#include "kernels/loss/ctc.h"
#include "kernels/loss/loss.h"
#include "ops/loss.h"
#include "ops/view.h"

namespace tensord::kernels {

CtcBatch::CtcBatch(const Tensor& log_probs, const Tensor& targets, const ops::IntList& input_lengths,
                   const ops::IntList& target_lengths, int64_t blank)
    : blank(blank), input_lengths(input_lengths), target_lengths(target_lengths) {
  check(log_probs.ndim() == 3, "log_probs must have 3 dimensions, got ", log_probs.ndim());
  check(is_floating(log_probs.dtype()) && log_probs.dtype() != DType::kFloat16 && log_probs.dtype() != DType::kBFloat16,
        "\"ctc_loss_cpu\" not implemented for '", name_of(log_probs.dtype()), "'");
  check(is_integral(targets.dtype(), false), "targets must be integers, got ", name_of(targets.dtype()));
  steps = log_probs.sizes()[0];
  count = log_probs.sizes()[1];
  classes = log_probs.sizes()[2];
  check(blank >= 0 && blank < classes, "blank must be in label range");
  check(static_cast<int64_t>(input_lengths.size()) == count, "input_lengths must be of size batch_size");
  check(static_cast<int64_t>(target_lengths.size()) == count, "target_lengths must be of size batch_size");
  check(targets.ndim() == 1 || (targets.ndim() == 2 && targets.sizes()[0] == count),
        "targets must have 1 dimension, or one row for each of the batch, got ", targets.sizes());
  int64_t longest = 0, at = 0;
  for (int64_t n = 0; n < count; ++n) {
    const int64_t in = input_lengths[static_cast<size_t>(n)], out = target_lengths[static_cast<size_t>(n)];
    check(in >= 0 && in <= steps, "Expected input_lengths to have value at most ", steps, ", but got value ", in);
    check(out >= 0 && out <= targets.numel(), "Expected tensor to have size at least ", out,
          " at dimension 1, but got size ", targets.sizes(), " for argument #2 'targets'");
    check(targets.ndim() == 1 || out <= targets.sizes()[1], "Expected tensor to have size at least ", out,
          " at dimension 1, but got size ", targets.sizes(), " for argument #2 'targets'");
    first.push_back(targets.ndim() == 1 ? at : n * targets.sizes()[1]);
    at += out;
    longest = std::max(longest, out);
  }
  check(targets.ndim() == 2 || at <= targets.numel(), "Expected targets to have size at least ", at, ", but got ",
        targets.numel());
  states = 2 * longest + 1;
}

namespace {

using gradient::Expr;
using ops::IntList;
using ops::TensorMeta;
using ops::Value;

constexpr double kLogZero = -std::numeric_limits<double>::infinity();

std::vector<TensorMeta> infer_ctc(const Tensor& log_probs, const Tensor& targets, const IntList& input_lengths,
                                  const IntList& target_lengths, int64_t blank) {
  const CtcBatch batch(log_probs, targets, input_lengths, target_lengths, blank);
  return {{Dims{batch.count}, log_probs.dtype(), {}, log_probs.device()},
          {Dims{batch.count, batch.steps, batch.states}, log_probs.dtype(), {}, log_probs.device()}};
}

OP("aten::_ctc_loss")
    .infer([](const Tensor& log_probs, const Tensor& targets, const IntList& input_lengths,
              const IntList& target_lengths, int64_t blank,
              bool) { return infer_ctc(log_probs, targets, input_lengths, target_lengths, blank); })
    .gradient(gradient::of_first([](const ops::GradArgs& args, const Tensor& g) {
      const auto& v = args.inputs;
      return ops::_ctc_loss_backward(g, v[0].to_tensor(), v[1].to_tensor(), ops::unbox<Dims>(v[2]),
                                     ops::unbox<Dims>(v[3]), args.outputs[0].to_tensor(), args.outputs[1].to_tensor(),
                                     v[4].to_int(), v[5].to_bool());
    }))
    .saves("log_probs, targets, result0, result1");

// As in PyTorch, the backward has no gradient of its own.
OP("aten::_ctc_loss_backward")
    .infer([](const Tensor& g, const Tensor& log_probs, const Tensor& targets, const IntList& input_lengths,
              const IntList& target_lengths, const Tensor& losses, const Tensor& log_alpha, int64_t blank, bool) {
      const std::vector<TensorMeta> forward = infer_ctc(log_probs, targets, input_lengths, target_lengths, blank);
      check(
          g.sizes() == forward[0].sizes && losses.sizes() == forward[0].sizes && log_alpha.sizes() == forward[1].sizes,
          "the gradient, the losses or log_alpha are not of the forward's sizes");
      return TensorMeta{log_probs.sizes(), log_probs.dtype(), {}, log_probs.device()};
    });

// A single sample may come without a batch dimension.
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const IntList& input_lengths,
                const IntList& target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
  const bool is_single = log_probs.ndim() == 2;
  const Tensor p = is_single ? ops::unsqueeze(log_probs, 1) : log_probs;
  const ops::Op& op = ops::get_op("aten::_ctc_loss");
  const std::vector<Value> arguments{
      p, targets, ops::make_int_list(input_lengths), ops::make_int_list(target_lengths), blank, zero_infinity};
  Expr losses = Expr(ops::run(op, arguments).at(0));
  if (zero_infinity) losses = gradient::where(losses == -kLogZero, 0.0, losses);
  if (reduction == kLossMean) {
    const Tensor lengths = Tensor::empty(Dims{static_cast<int64_t>(target_lengths.size())}, losses.tensor().dtype());
    Dims counts = target_lengths;
    for (int64_t& count : counts) count = std::max<int64_t>(1, count);
    lengths.copy_from(vector_of(counts));
    losses = losses / Expr(lengths.to(losses.tensor().device()));
  } else if (is_single && reduction == kLossNone) {
    return ops::squeeze(losses.tensor(), 0);
  }
  return reduce_loss(losses.tensor(), reduction);
}
OP("aten::ctc_loss.IntList")
    .impl([](const Tensor& p, const Tensor& targets, const IntList& input_lengths, const IntList& target_lengths,
             int64_t blank, int64_t reduction, bool zero_infinity) {
      return ctc_loss(p, targets, input_lengths, target_lengths, blank, reduction, zero_infinity);
    })
    .composite();

IntList lengths_of(const Tensor& lengths) {
  check(is_integral(lengths.dtype(), false), "input_lengths and target_lengths must be integral");
  check(!lengths.is_meta(), "the lengths are not known yet");
  return IntList(integers_of(lengths));
}
OP("aten::ctc_loss.Tensor")
    .impl([](const Tensor& p, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
             int64_t blank, int64_t reduction, bool zero_infinity) {
      return ctc_loss(p, targets, lengths_of(input_lengths), lengths_of(target_lengths), blank, reduction,
                      zero_infinity);
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels
