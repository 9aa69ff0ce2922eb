#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "server/training/jobs/job_spec.h"

namespace tensord::server {

// f1, precision, recall and auc of a classifier, with scikit-learn's definitions, over the batches of an evaluation.
// One score a row (or two classes): of class 1. More classes: the mean over the classes; auc is that of each class
// against the others. Not thread-safe.
class ClassMetrics {
 public:
  explicit ClassMetrics(const LossSpec& loss) : loss_(loss) {}

  static bool is_one(const std::string& metric);

  // Scores [rows, classes, …] with labels [rows, …], or one score a row; on the host. `keeps_scores`: for auc. Throws
  // Error{kInvalidArgument} if the shapes do not match.
  void add(const Tensor& output, const Tensor& label, bool keeps_scores);
  // NaN for auc if a class has no row, or all of them, or if a score is NaN.
  double value(const std::string& metric) const;

 private:
  struct Count {
    double hits = 0, false_alarms = 0, misses = 0;
  };
  void add_row(const std::vector<double>& scores, int64_t label, bool keeps_scores);
  double auc_of(int64_t klass) const;

  const LossSpec& loss_;
  std::vector<Count> counts_;   // by class
  std::vector<double> scores_;  // of rows with scores_per_row_ each
  std::vector<int64_t> labels_;
  int64_t scores_per_row_ = 0;
  bool has_nan_ = false;
};

}  // namespace tensord::server
