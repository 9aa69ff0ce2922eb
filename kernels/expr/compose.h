#pragma once

#include "core/ops/run.h"
#include "kernels/expr/expr.h"
#include "ops/view.h"

// Helpers of compositions besides the operators' functions (ops/*.h).
namespace tensord::kernels::compose {

using gradient::Expr;

inline Tensor to(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : ops::to(x, dtype); }

}  // namespace tensord::kernels::compose
