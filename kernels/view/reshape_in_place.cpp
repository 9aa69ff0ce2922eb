#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/view/view.h"
#include "ops/view.h"

// Views that replace their argument: "x.unsqueeze_(0)" gives every holder of x the new shape. A function that contains
// one is interpreted as written (core/jit/ir/operator_search.h).
namespace tensord::kernels {
namespace {

// Autograd's nodes and views remember the shape that a tensor had.
Tensor take_shape(const Tensor& x, const char* name, const Tensor& view) {
  if (x.impl()->autograd) {
    fail(ErrorCode::kUnimplemented, name, ": not supported on a tensor that autograd follows; use the form without _");
  }
  x.impl()->sizes = view.sizes();
  x.impl()->strides = view.strides();
  return x;
}

Tensor transpose_in_place(const Tensor& x, int64_t dim0, int64_t dim1) {
  return take_shape(x, "transpose_", transpose(x, dim0, dim1));
}

OP("aten::squeeze_").kind(ops::OpKind::kView).impl([](const Tensor& x) {
  return take_shape(x, "squeeze_", ops::squeeze(x));
});
OP("aten::squeeze_.dim").kind(ops::OpKind::kView).impl([](const Tensor& x, int64_t dim) {
  return take_shape(x, "squeeze_", ops::squeeze(x, dim));
});
OP("aten::squeeze_.dims").kind(ops::OpKind::kView).impl([](const Tensor& x, const IntList& dim) {
  return take_shape(x, "squeeze_", ops::squeeze(x, dim));
});
OP("aten::unsqueeze_").kind(ops::OpKind::kView).impl([](const Tensor& x, int64_t dim) {
  return take_shape(x, "unsqueeze_", unsqueeze(x, dim));
});
OP("aten::t_").kind(ops::OpKind::kView).impl([](const Tensor& x) { return take_shape(x, "t_", ops::t(x)); });
OP("aten::transpose_").kind(ops::OpKind::kView).impl(transpose_in_place);
OP("aten::swapaxes_").kind(ops::OpKind::kView).impl(transpose_in_place);
OP("aten::swapdims_").kind(ops::OpKind::kView).impl(transpose_in_place);

}  // namespace
}  // namespace tensord::kernels
