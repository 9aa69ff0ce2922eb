#pragma once

#include "core/ops/run.h"
#include "ops/pointwise.h"

namespace tensord::nn {

inline Tensor add(const Tensor& a, const Tensor& b) { return ops::add(a, b); }

}  // namespace tensord::nn
