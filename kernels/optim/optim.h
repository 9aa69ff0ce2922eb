#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor/tensor.h"

// The arithmetic of optimizers over pieces of flat memory; schemas and the walk over lists of tensors are in optim.cpp.
namespace tensord::kernels {

// A piece of one parameter with its gradient and state, all float or all double, and in the same order.
struct OptimSpan {
  bool is_double;
  int64_t count;
  void* param;
  const void* grad;
  void* state[3];  // null where not in use
};

struct SgdNumbers {
  double lr, weight_decay, momentum, dampening;
  bool nesterov, maximize;
  bool is_first;  // the momentum buffer (state 0) starts as the gradient
};
void sgd_span(const SgdNumbers& numbers, const OptimSpan& span);

// State: mean of gradients, mean of squares, largest mean of squares (amsgrad) or null.
struct AdamNumbers {
  double step_size;     // lr / (1 - beta1^step)
  double weight_decay;  // added to the gradient
  double shrink;        // the parameter is multiplied by it first
  double beta1, beta2, eps;
  double root_factor;  // 1 / sqrt(1 - beta2^step)
  bool maximize;
};
void adam_span(const AdamNumbers& numbers, const OptimSpan& span);

// State: mean of squares, momentum buffer or null, mean of gradients (centered) or null.
struct RmspropNumbers {
  double lr, alpha, eps, weight_decay, momentum;
  bool maximize;
};
void rmsprop_span(const RmspropNumbers& numbers, const OptimSpan& span);

// State: sum of squares.
struct AdagradNumbers {
  double lr, weight_decay, eps;
  bool maximize;
};
void adagrad_span(const AdagradNumbers& numbers, const OptimSpan& span);

enum class NormKind { kSum, kSquares, kMax, kPower };
// Sum of |x|, x², |x|^power, or the largest |x|; NaN when any is. The order of additions depends on `count` alone.
double norm_span(NormKind kind, double power, bool is_double, const void* data, int64_t count);
void scale_span(double factor, bool is_double, void* data, int64_t count);
// NaN stays.
void clamp_span(double limit, bool is_double, void* data, int64_t count);

// Uninitialized tensors with the parameters' sizes and, where these are dense, strides.
inline std::vector<Tensor> tensors_like(const std::vector<Tensor>& params) {
  std::vector<Tensor> made;
  made.reserve(params.size());
  for (const Tensor& param : params) {
    const bool is_dense = is_non_overlapping_and_dense(param.sizes(), param.strides());
    made.push_back(Tensor::empty_strided(param.sizes(), is_dense ? param.strides() : contiguous_strides(param.sizes()),
                                         param.dtype(), param.device()));
  }
  return made;
}

}  // namespace tensord::kernels
