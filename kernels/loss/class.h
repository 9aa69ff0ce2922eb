#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor/tensor.h"

// Losses of class scores with the label of each sample: scores have the layout N, C, rest.
namespace tensord::kernels {

// The sizes and options of a loss.
struct ClassLoss {
  int64_t samples = 0, classes = 0, inner = 1;  // inner: elements of rest; a sample is one of N and rest
  int64_t ignore_index = -100;
  double smoothing = 0;

  int64_t count() const { return samples * inner; }
};
// Throws Error with PyTorch's message for sizes and dtypes that do not fit. A single sample without N is allowed.
ClassLoss make_class_loss(const Tensor& scores, const Tensor& target, const std::optional<Tensor>& weight,
                          int64_t ignore_index);
// The same for cross_entropy_loss, where there must be classes.
ClassLoss make_cross_entropy(const Tensor& scores, const Tensor& target, const std::optional<Tensor>& weight,
                             int64_t reduction, int64_t ignore_index, double smoothing);
// The labels, dense int64. Throws Error{kOutOfRange} for one that is neither a class nor ignored.
Tensor check_labels(const ClassLoss& loss, const Tensor& target);

// Of neighboring samples: the largest score, and the logarithm of the sum of exponentials around it.
// `step` is between the classes of a sample; samples lie side by side when it is not 1, else a row apart.
void class_moments(const float* scores, int64_t classes, int64_t step, int64_t count, float* largest, float* log_sum);
void class_moments(const double* scores, int64_t classes, int64_t step, int64_t count, double* largest,
                   double* log_sum);
// out = scale softmax(score) - weight share, for each class; the weight may be null, which means 1. Each sample has
// its own scale and share.
void class_slopes(const float* scores, int64_t classes, int64_t step, int64_t count, const float* largest,
                  const float* log_sum, const float* scale, const float* share, const float* weight, float* out);
void class_slopes(const double* scores, int64_t classes, int64_t step, int64_t count, const double* largest,
                  const double* log_sum, const double* scale, const double* share, const double* weight, double* out);

}  // namespace tensord::kernels
