#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"

namespace tensord::kernels {

enum class OptimStep : int8_t { kSgd, kAdam, kRmsprop, kAdagrad };

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

// One step over some parameters. Names and numbers are those of kernels/optim/optim.h.
struct OptimJob {
  OptimStep step = OptimStep::kSgd;
  bool is_double = false, nesterov = false, maximize = false, is_first = false;
  int spans = 0;
  double lr = 0, weight_decay = 0, momentum = 0, dampening = 0, shrink = 1, beta1 = 0, beta2 = 0, eps = 0, alpha = 0;
  DeviceSpan span[kOptimSpans];
};

}  // namespace tensord::kernels
