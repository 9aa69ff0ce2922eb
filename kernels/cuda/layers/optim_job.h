#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"

namespace tensord::kernels {

// kAverage: `param` is an average that moves by `number` of the distance to the parameter, which lies in `grad`. The
// latter three are of gradients alone, which lie in `grad`: parts of their norm, and their scaling and clamping.
enum class OptimStep : int8_t { kSgd, kAdam, kRmsprop, kAdagrad, kAverage, kNorm, kScale, kClamp };

// A parameter with its gradient and states, all in one memory order; see OptimSpan in kernels/optim/optim.h.
struct DeviceSpan {
  int64_t count = 0;
  double step_size = 0;    // for adam: lr / (1 - beta1^step); for adagrad the rate
  double root_factor = 1;  // for adam: 1 / sqrt(1 - beta2^step)
  cuda::DeviceAddress param, grad;
  cuda::DeviceAddress state[3];  // null where not in use
  cuda::DeviceAddress rounded;   // the parameter of 16 bits that `param` is a copy of; null: none
  int8_t grad_dtype = 0, rounded_dtype = 0;
};
inline constexpr int kOptimSpans = 24;
inline constexpr int kNormParts = 64;  // of each gradient
enum class GradientNorm : int8_t { kAbsolutes, kSquares, kPowers, kLargest };

// One step over some parameters. Names and numbers are those of kernels/optim/optim.h.
struct OptimJob {
  OptimStep step = OptimStep::kSgd;
  bool is_double = false, nesterov = false, maximize = false, is_first = false;
  int spans = 0;
  double lr = 0, weight_decay = 0, momentum = 0, dampening = 0, shrink = 1, beta1 = 0, beta2 = 0, eps = 0, alpha = 0;
  // kNorm: each block sums, in float64, |x|, x² or |x|^number, or takes the largest |x| (NaN where there is one), and
  // writes one of kNormParts numbers of its gradient, one gradient behind another. kScale: x * number. kClamp: to
  // -number … number; NaN stays.
  GradientNorm norm = GradientNorm::kSquares;
  double number = 0;
  cuda::DeviceAddress parts;
  DeviceSpan span[kOptimSpans];
};

}  // namespace tensord::kernels
