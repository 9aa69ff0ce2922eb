#include "core/ops/attributes/writes_part.h"
#include "core/ops/attributes/written.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/expr/expr.h"
#include "kernels/index/like_self.h"
#include "ops/embedding.h"
#include "ops/index.h"
#include "ops/pointwise.h"
#include "ops/view.h"

// Writes by indices along one dimension, and take. Schemas, shapes and gradients.
namespace tensord::kernels {
namespace {

using ops::Scalar;
using ops::TensorMeta;
using ops::WritesInto;
using ops::WritesPart;

TensorMeta index_add_meta(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, const Scalar&) {
  dim = wrap_dim(dim, x.ndim());
  check(index.ndim() <= 1, "index_add(): Index is supposed to be a vector, but got dim: ", index.ndim());
  check(x.dtype() == source.dtype(), "index_add(): self and source must have the same scalar type");
  const int64_t length = source.ndim() == 0 ? 1 : source.sizes()[wrap_dim(dim, source.ndim())];
  check(index.numel() == length, "index_add(): Number of indices (", index.numel(),
        ") should be equal to source.size(dim): (", length, "), for dim: ", dim);
  check(x.ndim() == source.ndim(), "index_add(): self and source must have the same number of dimensions");
  for (int64_t d = 0; d < x.ndim(); ++d) {
    check(d == dim || x.sizes()[d] == source.sizes()[d],
          "index_add(): the sizes of self and source differ at dimension ", d);
  }
  return like_self(x);
}

TensorMeta index_copy_meta(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  return index_add_meta(x, dim, index, source, 1);
}

TensorMeta index_fill_meta(const Tensor& x, int64_t dim, const Tensor& index, const Scalar&) {
  wrap_dim(dim, x.ndim());
  check(index.dtype() == DType::kInt64, "index_fill_(): Expected dtype int64 for index.");
  check(index.ndim() <= 1, "Index has to be a vector/scalar");
  return like_self(x);
}
TensorMeta index_fill_tensor_meta(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value) {
  check(value.ndim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ", value.ndim(),
        " dimension(s).");
  return index_fill_meta(x, dim, index, 0);
}
TensorMeta take_meta(const Tensor& x, const Tensor& index) {
  check(index.dtype() == DType::kInt64, "take(): Expected a long tensor for index, but got ", name_of(index.dtype()));
  return {index.sizes(), x.dtype(), {}, x.device()};
}

using gradient::of_first;
using ops::GradArgs;
using ops::Value;

// A gradient with the rows that were overwritten set to zero.
Tensor without_rows(const GradArgs& args, const Tensor& g) {
  const Tensor& index = args.inputs[2].to_tensor();
  const Tensor wide = index.dtype() == DType::kInt64 ? index : ops::to(index, DType::kInt64);
  return ops::index_fill(g, args.inputs[1].to_int(), wide, 0);
}
// The rows that the indices name, in the shape of the source.
Tensor rows_for(const GradArgs& args, const Tensor& g) {
  const Tensor rows = ops::index_select(g, args.inputs[1].to_int(), args.inputs[2].to_tensor());
  return ops::reshape(rows, gradient::sizes_of(args, 3));
}
std::vector<Tensor> index_add_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Tensor& g = args.grad_outputs[0];
  if (!g) return gradients;
  if (args.needs(0)) gradients[0] = g;
  if (args.needs(3)) gradients[3] = ops::mul(rows_for(args, g), args.inputs[4].to_scalar());
  return gradients;
}
std::vector<Tensor> index_copy_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Tensor& g = args.grad_outputs[0];
  if (!g) return gradients;
  if (args.needs(0)) gradients[0] = without_rows(args, g);
  if (args.needs(3)) gradients[3] = rows_for(args, g);
  return gradients;
}
std::vector<Tensor> index_fill_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Tensor& g = args.grad_outputs[0];
  if (!g) return gradients;
  if (args.needs(0)) gradients[0] = without_rows(args, g);
  if (!args.needs(3) || !args.inputs[3].is_tensor()) return gradients;
  gradients[3] = gradient::fit_gradient(ops::index_select(g, args.inputs[1].to_int(), args.inputs[2].to_tensor()),
                                        args.inputs[3].to_tensor());
  return gradients;
}
Tensor take_gradient(const GradArgs& args, const Tensor& g) {
  const Tensor flat = ops::reshape(gradient::zeros_like(args.inputs[0]), Dims{-1});
  return ops::reshape(ops::index_put(flat, {args.inputs[1].to_tensor()}, g, true), gradient::sizes_of(args, 0));
}

OP("aten::index_add")
    .infer(index_add_meta)
    .gradient(index_add_gradient)
    .saves("index")
    .set<WritesInto>(WritesInto::kAnyDType, WritesInto::kSharesNothing)
    .set<WritesPart>();
OP("aten::index_copy")
    .infer(index_copy_meta)
    .gradient(index_copy_gradient)
    .saves("index")
    .set<WritesInto>(WritesInto::kAnyDType, WritesInto::kSharesNothing)
    .set<WritesPart>();
OP("aten::index_fill.int_Scalar").infer(index_fill_meta).gradient(index_fill_gradient).saves("index").set<WritesPart>();
OP("aten::index_fill.int_Tensor")
    .infer(index_fill_tensor_meta)
    .gradient(index_fill_gradient)
    .saves("index")
    .set<WritesPart>();
OP("aten::take").infer(take_meta).gradient(of_first(take_gradient)).saves("index");

}  // namespace
}  // namespace tensord::kernels
