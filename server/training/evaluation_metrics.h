#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "server/training/class_metrics.h"
#include "server/training/jobs/job_spec.h"

namespace tensord::server {

// Accumulates metrics over the batches of an evaluation. Not thread-safe.
class EvaluationMetrics {
 public:
  EvaluationMetrics(std::vector<std::string> metrics, LossSpec loss);

  // `loss` is the mean of a batch of `rows`; `output` and `label` are used if a metric needs them. Accuracies take the
  // classes from dimension 1; an output with one value per row is a score for class 1, with threshold 0 (bce: 0.5).
  // `own` has the batch's value of each metric that is a method of the script. Throws Error{kInvalidArgument} if the
  // shapes do not match.
  void add(double loss, int64_t rows, const Tensor& output, const Tensor& label,
           const std::map<std::string, double>& own = {});
  // The mean of each metric.
  std::map<std::string, double> means() const;
  // Whether a metric needs more than the loss.
  static bool needs_output(const std::vector<std::string>& metrics);
  // Whether the name is that of a method of the script: metric_….
  static bool is_own(const std::string& metric);

 private:
  struct Sum {
    double total = 0;
    double count = 0;
  };
  void add_accuracy(const Tensor& output, const Tensor& label, int64_t top_n, Sum& sum) const;
  void add_binary_accuracy(const Tensor& output, const Tensor& label, Sum& sum) const;
  void add_error(const Tensor& output, const Tensor& label, bool is_squared, Sum& sum) const;

  const std::vector<std::string> metrics_;
  const LossSpec loss_;
  std::map<std::string, Sum> sums_;
  ClassMetrics classes_{loss_};  // of f1, precision, recall and auc
};

}  // namespace tensord::server
