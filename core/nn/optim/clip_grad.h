#pragma once

#include <limits>
#include <span>

#include "core/tensor/tensor.h"

namespace tensord::nn {

// Scales the gradients of all parameters by one factor, so that their norm as one vector is at most `max_norm`; returns
// the norm before. `norm_type` is 2, 1, any p > 0 or infinity. Parameters without a gradient are ignored. The norm does
// not depend on the number of threads. If the norm is not finite and `error_if_nonfinite` is set, throws Error and
// leaves the gradients unchanged.
double clip_grad_norm_(std::span<const Tensor> parameters, double max_norm, double norm_type = 2.0,
                       bool error_if_nonfinite = false);
inline constexpr double kInfinityNorm = std::numeric_limits<double>::infinity();

// Drops the gradients, or fills them with zeros.
void zero_grad(std::span<const Tensor> parameters, bool set_to_none = true);

// Returns the norm without scaling.
double grad_norm(std::span<const Tensor> parameters, double norm_type = 2.0);

// Clamps every element of the gradients to [-clip_value, clip_value].
void clip_grad_value_(std::span<const Tensor> parameters, double clip_value);

}  // namespace tensord::nn
