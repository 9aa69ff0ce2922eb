// The loops of ctc_loss: likelihoods over all alignments, and their gradients.
#include "kernels/loss/ctc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/op.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::KernelContext;

constexpr double kLogZero = -std::numeric_limits<double>::infinity();

double log_add(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  return high == kLogZero ? kLogZero : high + std::log1p(std::exp(low - high));
}

void check_ctc_labels(const CtcBatch& batch, const int64_t* labels) {
  for (int64_t n = 0; n < batch.count; ++n) {
    for (int64_t s = 0; s < batch.target_lengths[static_cast<size_t>(n)]; ++s) {
      const int64_t y = labels[batch.first[static_cast<size_t>(n)] + s];
      check(y >= 0 && y < batch.classes, "target ", y, " is out of bounds for ", batch.classes, " classes");
    }
  }
}

// One sample of a batch.
struct Sample {
  const double* log_probs;  // of its first step
  int64_t step;             // between steps
  const int64_t* labels;
  int64_t steps, length, blank;

  Sample(const CtcBatch& batch, const double* all, const int64_t* labels, int64_t n)
      : log_probs(all + n * batch.classes),
        step(batch.count * batch.classes),
        labels(labels + batch.first[static_cast<size_t>(n)]),
        steps(batch.input_lengths[static_cast<size_t>(n)]),
        length(batch.target_lengths[static_cast<size_t>(n)]),
        blank(batch.blank) {}
  int64_t states() const { return 2 * length + 1; }
  int64_t label(int64_t s) const { return s % 2 == 0 ? blank : labels[s / 2]; }
  double at(int64_t t, int64_t s) const { return log_probs[t * step + label(s)]; }
  // Whether the blank before state s may be skipped.
  bool skips(int64_t s) const { return s >= 2 && label(s) != label(s - 2); }
};

// alpha[t][s]: the likelihood of the first t + 1 steps that end in state s. Returns minus the logarithm of the whole
// likelihood.
double forward(const Sample& sample, int64_t row, double* alpha) {
  const int64_t states = sample.states();
  if (sample.steps == 0) return sample.length == 0 ? 0 : -kLogZero;
  for (int64_t t = 0; t < sample.steps; ++t) {
    double* now = alpha + t * row;
    const double* before = now - row;
    for (int64_t s = 0; s < states; ++s) {
      double sum = t == 0 ? (s < 2 ? 0 : kLogZero) : before[s];
      if (t > 0 && s > 0) sum = log_add(sum, before[s - 1]);
      if (t > 0 && sample.skips(s)) sum = log_add(sum, before[s - 2]);
      now[s] = sum + sample.at(t, s);
    }
  }
  const double* last = alpha + (sample.steps - 1) * row;
  return -(states > 1 ? log_add(last[states - 1], last[states - 2]) : last[0]);
}

// The gradient of the scores of which log_probs is the log_softmax, as PyTorch defines it: exp(log_probs) less the
// share of the likelihood that goes through each class, times the incoming gradient.
void backward(const Sample& sample, const CtcBatch& batch, const double* alpha, double loss, double g, double* dx) {
  const int64_t states = sample.states();
  std::vector<double> beta(static_cast<size_t>(states)), before(beta), through(static_cast<size_t>(batch.classes));
  for (int64_t t = sample.steps - 1; t >= 0; --t) {
    std::fill(through.begin(), through.end(), kLogZero);
    for (int64_t s = 0; s < states; ++s) {
      const auto i = static_cast<size_t>(s);
      double sum = kLogZero;
      if (t == sample.steps - 1) {
        if (s >= states - 2) sum = 0;
      } else {
        sum = before[i];
        if (s + 1 < states) sum = log_add(sum, before[i + 1]);
        if (s + 2 < states && sample.skips(s + 2)) sum = log_add(sum, before[i + 2]);
      }
      beta[i] = sum + sample.at(t, s);
      double& to = through[static_cast<size_t>(sample.label(s))];
      to = log_add(to, alpha[t * batch.states + s] + beta[i]);
    }
    for (int64_t c = 0; c < batch.classes; ++c) {
      const double p = sample.log_probs[t * sample.step + c];
      dx[t * sample.step + c] = (std::exp(p) - std::exp(through[static_cast<size_t>(c)] + loss - p)) * g;
    }
    std::swap(beta, before);
  }
}

void run_ctc(const KernelContext&, const Tensor& log_probs, const Tensor& targets, const IntList& input_lengths,
             const IntList& target_lengths, int64_t blank, bool, Tensor& losses, Tensor& log_alpha) {
  const CtcBatch batch(log_probs, targets, input_lengths, target_lengths, blank);
  const Tensor p = log_probs.to(DType::kFloat64).contiguous(), labels = targets.to(DType::kInt64).contiguous(),
               loss = Tensor::empty(losses.sizes(), DType::kFloat64),
               alpha = Tensor::empty(log_alpha.sizes(), DType::kFloat64);
  check_ctc_labels(batch, labels.data<int64_t>());
  std::fill_n(alpha.data<double>(), alpha.numel(), kLogZero);
  parallel_for(batch.count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      loss.data<double>()[n] = forward(Sample(batch, p.data<double>(), labels.data<int64_t>(), n), batch.states,
                                       alpha.data<double>() + n * batch.steps * batch.states);
    }
  });
  losses.copy_from(loss);
  log_alpha.copy_from(alpha);
}

void run_ctc_backward(const KernelContext&, const Tensor& g, const Tensor& log_probs, const Tensor& targets,
                      const IntList& input_lengths, const IntList& target_lengths, const Tensor& losses,
                      const Tensor& log_alpha, int64_t blank, bool zero_infinity, Tensor& out) {
  const CtcBatch batch(log_probs, targets, input_lengths, target_lengths, blank);
  const auto wide = [](const Tensor& x) { return x.to(DType::kFloat64).contiguous(); };
  const Tensor p = wide(log_probs), labels = targets.to(DType::kInt64).contiguous(), incoming = wide(g),
               loss = wide(losses), alpha = wide(log_alpha), dx = Tensor::empty(out.sizes(), DType::kFloat64);
  check_ctc_labels(batch, labels.data<int64_t>());
  std::fill_n(dx.data<double>(), dx.numel(), 0.0);
  parallel_for(batch.count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const double of = loss.data<double>()[n];
      if (zero_infinity && of == -kLogZero) continue;
      backward(Sample(batch, p.data<double>(), labels.data<int64_t>(), n), batch,
               alpha.data<double>() + n * batch.steps * batch.states, of, incoming.data<double>()[n],
               dx.data<double>() + n * batch.classes);
    }
  });
  out.copy_from(dx);
}

IMPL("aten::_ctc_loss", kCPU, run_ctc);
IMPL("aten::_ctc_loss_backward", kCPU, run_ctc_backward);

}  // namespace
}  // namespace tensord::kernels
