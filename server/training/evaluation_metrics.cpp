#include "server/training/evaluation_metrics.h"

#include <algorithm>
#include <cmath>

#include "core/base/ascii.h"
#include "core/base/error.h"
#include "core/tensor/device_copy.h"

namespace tensord::server {

EvaluationMetrics::EvaluationMetrics(std::vector<std::string> metrics, LossSpec loss)
    : metrics_(std::move(metrics)), loss_(std::move(loss)) {}

bool EvaluationMetrics::needs_output(const std::vector<std::string>& metrics) {
  return std::any_of(metrics.begin(), metrics.end(), [](const std::string& metric) { return metric != "loss"; });
}

bool EvaluationMetrics::is_own(const std::string& metric) {
  constexpr std::string_view kPrefix = "metric_";
  return metric.starts_with(kPrefix) && metric.size() > kPrefix.size() &&
         std::ranges::all_of(metric, [](char c) { return is_ascii_alnum(c) || c == '_'; });
}

void EvaluationMetrics::add(double loss, int64_t rows, const Tensor& given, const Tensor& given_label,
                            const std::map<std::string, double>& own) {
  const bool has_output = given.defined() && given_label.defined();
  const Tensor output = has_output ? host_copy(given) : given,
               label = has_output ? host_copy(given_label) : given_label;
  const bool has_class_metric = std::ranges::any_of(metrics_, ClassMetrics::is_one);
  if (has_class_metric) classes_.add(output, label, std::ranges::find(metrics_, "auc") != metrics_.end());
  for (const std::string& metric : metrics_) {
    if (ClassMetrics::is_one(metric)) continue;
    Sum& sum = sums_[metric];
    if (metric == "loss" || is_own(metric)) {
      sum.total += (metric == "loss" ? loss : own.at(metric)) * static_cast<double>(rows);
      sum.count += static_cast<double>(rows);
    } else if (metric == "accuracy") {
      add_accuracy(output, label, 1, sum);
    } else if (const int64_t n = top_n_of(metric)) {
      add_accuracy(output, label, n, sum);
    } else {
      add_error(output, label, metric != "mae", sum);
    }
  }
}

void EvaluationMetrics::add_accuracy(const Tensor& output, const Tensor& label, int64_t top_n, Sum& sum) const {
  if (output.ndim() < 2 || (output.ndim() == 2 && output.size(1) == 1)) {
    add_binary_accuracy(output, label, sum);
    return;
  }
  const Tensor scores = output.to(DType::kFloat32).contiguous();
  const Tensor labels = label.to(DType::kInt64).contiguous();
  const int64_t rows = scores.size(0), classes = scores.size(1),
                inner = scores.numel() / std::max<int64_t>(rows * classes, 1);
  check(labels.numel() == rows * inner, "accuracy: the output has shape ", output.sizes(), ", the label ",
        label.sizes());
  const float* score = scores.data<float>();
  const int64_t* wanted = labels.data<int64_t>();
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < inner; ++i) {
      const int64_t target = wanted[row * inner + i];
      if (target == loss_.ignore_index.value_or(-100)) continue;
      const float* of_class = score + row * classes * inner + i;
      sum.count += 1;
      if (target < 0 || target >= classes || std::isnan(of_class[target * inner])) continue;
      // The rank of the target class; among equal scores, earlier classes rank first.
      int64_t place = 0;
      for (int64_t c = 0; c < classes; ++c) {
        const float other = of_class[c * inner], own = of_class[target * inner];
        place += other > own || (other == own && c < target);
      }
      sum.total += place < top_n;
    }
  }
}

void EvaluationMetrics::add_binary_accuracy(const Tensor& output, const Tensor& label, Sum& sum) const {
  check(output.numel() == label.numel(), "accuracy: the output has shape ", output.sizes(), ", the label ",
        label.sizes());
  const Tensor scores = output.to(DType::kFloat32).contiguous();
  const Tensor labels = label.to(DType::kFloat32).contiguous();
  const float limit = loss_.builtin == "bce" ? 0.5f : 0.0f;
  for (int64_t i = 0; i < scores.numel(); ++i) {
    sum.total += (scores.data<float>()[i] > limit) == (labels.data<float>()[i] > 0.5f);
    sum.count += 1;
  }
}

void EvaluationMetrics::add_error(const Tensor& output, const Tensor& label, bool is_squared, Sum& sum) const {
  check(output.numel() == label.numel(), "the output has shape ", output.sizes(), ", the label ", label.sizes(),
        ": they cannot be compared");
  const Tensor found = output.to(DType::kFloat64).contiguous();
  const Tensor wanted = label.to(DType::kFloat64).contiguous();
  for (int64_t i = 0; i < found.numel(); ++i) {
    const double error = std::abs(found.data<double>()[i] - wanted.data<double>()[i]);
    sum.total += is_squared ? error * error : error;
  }
  sum.count += static_cast<double>(found.numel());
}

std::map<std::string, double> EvaluationMetrics::means() const {
  std::map<std::string, double> out;
  for (const auto& [metric, sum] : sums_) {
    const double mean = sum.total / sum.count;  // NaN if nothing was counted
    out[metric] = metric == "rmse" ? std::sqrt(mean) : mean;
  }
  for (const std::string& metric : metrics_) {
    if (ClassMetrics::is_one(metric)) out[metric] = classes_.value(metric);
  }
  return out;
}

}  // namespace tensord::server
