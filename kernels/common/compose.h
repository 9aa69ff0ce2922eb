#pragma once

#include "core/ops/run.h"
#include "kernels/fused/gradient_expr.h"

// Short names for operators that compositions call. All run through the registry, so they are recorded.
namespace tensord::kernels::compose {

using gradient::Expr;
using ops::call;

inline Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  return call("aten::narrow", x, dim, start, length);
}
inline Tensor select(const Tensor& x, int64_t dim, int64_t index) { return call("aten::select.int", x, dim, index); }
inline Tensor unsqueeze(const Tensor& x, int64_t dim) { return call("aten::unsqueeze", x, dim); }
inline Tensor reshape(const Tensor& x, const Dims& sizes) { return call("aten::reshape", x, sizes); }
inline Tensor expand(const Tensor& x, const Dims& sizes) { return call("aten::expand", x, sizes); }
inline Tensor transpose(const Tensor& x, int64_t a, int64_t b) { return call("aten::transpose.int", x, a, b); }
inline Tensor cat(const std::vector<Tensor>& tensors, int64_t dim) { return call("aten::cat", tensors, dim); }
inline Tensor to(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : call("aten::to.dtype", x, dtype); }
inline Tensor sum(const Tensor& x, const Dims& dims, bool keepdim = false) {
  return call("aten::sum.dim_IntList", x, dims, keepdim);
}
inline Tensor mean(const Tensor& x, const Dims& dims, bool keepdim = false) {
  return call("aten::mean.dim", x, dims, keepdim);
}
inline Tensor matmul(const Tensor& a, const Tensor& b) { return call("aten::matmul", a, b); }

}  // namespace tensord::kernels::compose
