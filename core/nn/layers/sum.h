#pragma once

#include "core/ops/run.h"

namespace tensord::nn {

inline Tensor add(const Tensor& a, const Tensor& b) { return ops::call("aten::add.Tensor", a, b, 1); }

}  // namespace tensord::nn
