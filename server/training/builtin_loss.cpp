#include "server/training/builtin_loss.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/ops/run.h"
#include "core/tensor/device_copy.h"
#include "ops/loss.h"
#include "ops/view.h"

namespace tensord::server {
namespace {

using ops::Value;

constexpr int64_t kMean = 1;     // PyTorch's number for reduction="mean"
constexpr int64_t kMinRows = 4;  // fewer rows may sum to 1 by chance

// Class labels as int64, with the output's shape without its class dimension. Each label is a valid class or
// ignore_index.
Tensor class_labels(const LossSpec& spec, const Tensor& output, const Tensor& label) {
  check(output.ndim() > 0, "loss.output: a single number has no classes");
  const int64_t classes = output.size(output.ndim() == 1 ? 0 : 1);
  // Uses operators, so that a planned step (core/jit/runtime/step) can record them.
  Tensor labels = ops::contiguous(ops::to(label, DType::kInt64));
  // Accepts a column of labels in place of a vector.
  if (labels.ndim() == 2 && output.ndim() == 2 && labels.size(1) == 1)
    labels = ops::reshape(labels, Dims{labels.size(0)});
  const int64_t ignored = spec.ignore_index.value_or(kIgnoreIndex);
  const Tensor host = host_copy(labels);
  const int64_t* values = host.data<int64_t>();
  for (int64_t i = 0; i < labels.numel(); ++i) {
    const bool is_known = (values[i] >= 0 && values[i] < classes) || values[i] == ignored;
    check(is_known, "loss.label: '", spec.label, "' has ", values[i], " at place ", i, ", but the output has ", classes,
          " classes");
  }
  return labels;
}

std::optional<Tensor> weights_for(const Tensor& output, const Tensor& class_weights) {
  if (!class_weights.defined()) return std::nullopt;
  const int64_t classes = output.size(output.ndim() == 1 ? 0 : 1);
  check(class_weights.numel() == classes, "loss.class_weights: ", class_weights.numel(),
        " weights, but the output has ", classes, " classes");
  return ops::to(class_weights, output.dtype());
}

Tensor value_labels(const LossSpec& spec, const Tensor& output, const Tensor& label) {
  Tensor labels = ops::to(label, output.dtype());
  if (labels.sizes() == output.sizes()) return labels;
  check(labels.numel() == output.numel(), "loss.label: '", spec.label, "' has shape ", label.sizes(),
        ", but the output ", output.sizes());
  return ops::reshape(ops::contiguous(labels), output.sizes());
}

double tolerance_of(const Tensor& output) { return size_of(output.dtype()) < 4 ? 1e-2 : 1e-4; }

// Whether the values of all classes are non-negative and sum to 1 everywhere, which does not happen to raw scores by
// chance.
bool are_probabilities(const Tensor& output) {
  const Tensor values = host_copy(output).to(DType::kFloat64).contiguous();
  if (values.ndim() < 2) return false;
  const int64_t classes = values.size(1);
  if (classes < 2 || values.numel() < kMinRows * classes) return false;
  const double tolerance = tolerance_of(output);
  const int64_t rows = values.size(0), places = values.numel() / (rows * classes);
  const double* data = values.data<double>();
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t place = 0; place < places; ++place) {
      double sum = 0;
      for (int64_t i = 0; i < classes; ++i) {
        const double value = data[(row * classes + i) * places + place];
        if (!(value >= 0)) return false;
        sum += value;
      }
      if (!(std::abs(sum - 1) < tolerance)) return false;
    }
  }
  return true;
}

bool has_positive(const Tensor& output) {
  const Tensor values = host_copy(output).to(DType::kFloat64).contiguous();
  const double* data = values.data<double>();
  return std::any_of(data, data + values.numel(),
                     [tolerance = tolerance_of(output)](double value) { return value > tolerance; });
}

}  // namespace

std::string check_first_output(const LossSpec& spec, const Tensor& output) {
  const std::string& name = spec.builtin;
  if (output.ndim() == 0 || !is_floating(output.dtype())) return {};
  check((name != "nll" && name != "kl_div") || !has_positive(output), "loss.builtin: ", name,
        " takes logarithms of probabilities, which are at most 0, but the output has values above: put log_softmax at "
        "the end of forward",
        name == "nll" ? ", or take cross_entropy for scores" : "");
  if (name != "cross_entropy" || !are_probabilities(output)) return {};
  return "warning: loss.builtin: cross_entropy takes scores, but the rows of the output are probabilities: they sum to "
         "1. It has a softmax of its own, and behind another one a model hardly learns: leave the softmax out of "
         "forward, or give a loss.method that works on what comes before it";
}

Tensor class_weights_of(const LossSpec& spec, DType dtype, Device device) {
  if (spec.class_weights.empty()) return {};
  const Tensor weights = Tensor::empty(Dims{static_cast<int64_t>(spec.class_weights.size())}, DType::kFloat64);
  std::ranges::copy(spec.class_weights, weights.data<double>());
  return weights.to(dtype).to(device);
}

Tensor builtin_loss(const LossSpec& spec, const Tensor& output, const Tensor& label, const Tensor& class_weights) {
  const std::string& name = spec.builtin;
  const Value none = Value();
  const double delta = spec.delta.value_or(1.0);
  if (name == "cross_entropy" || name == "nll") {
    const bool is_index = !is_floating(label.dtype());
    check(is_index || name == "cross_entropy", "loss.label: '", spec.label, "' must hold the numbers of classes");
    const Tensor target = is_index ? class_labels(spec, output, label) : value_labels(spec, output, label);
    const int64_t ignored = spec.ignore_index.value_or(kIgnoreIndex);
    const std::optional<Tensor> weights = weights_for(output, class_weights);
    if (name == "nll") return ops::nll_loss_nd(output, target, weights, kMean, ignored);
    return ops::cross_entropy_loss(output, target, weights, kMean, ignored, spec.label_smoothing);
  }
  const Tensor target = value_labels(spec, output, label);
  if (name == "mse") return ops::mse_loss(output, target, kMean);
  if (name == "l1") return ops::l1_loss(output, target, kMean);
  if (name == "smooth_l1") return ops::smooth_l1_loss(output, target, kMean, delta);
  if (name == "huber") return ops::huber_loss(output, target, kMean, delta);
  if (name == "bce") return ops::binary_cross_entropy(output, target, std::nullopt, kMean);
  if (name == "kl_div") return ops::kl_div(output, target, kMean);
  check(name == "bce_with_logits", "loss.builtin: '", name, "' is not known");
  return ops::binary_cross_entropy_with_logits(output, target, std::nullopt, std::nullopt, kMean);
}

}  // namespace tensord::server
