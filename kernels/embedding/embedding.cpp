// embedding and index_select: rows of a table, by index. Schemas, shapes and gradients.
#include "ops/embedding.h"
#include "core/base/error.h"
#include "core/ops/attributes/batch_independence.h"
#include "core/ops/attributes/written.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "core/ops/sparse.h"
#include "kernels/expr/expr.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::TensorMeta;
using ops::WritesInto;

TensorMeta embedding_meta(const Tensor& table, const Tensor& indices, int64_t, bool, bool) {
  check(table.ndim() == 2, "'weight' must be 2-D");
  check(indices.dtype() == DType::kInt64 || indices.dtype() == DType::kInt32,
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got ",
        name_of(indices.dtype()), " instead (while checking arguments for embedding)");
  Dims sizes = indices.sizes();
  sizes.push_back(table.sizes()[1]);
  return {std::move(sizes), table.dtype(), {}, table.device()};
}

// --- the gradient of embedding: adds each row to the row of the table that it was read from

TensorMeta embedding_backward_meta(const Tensor& grad, const Tensor& indices, int64_t rows, int64_t, bool) {
  check(indices.dtype() == DType::kInt64 || indices.dtype() == DType::kInt32,
        "embedding_dense_backward: expected indices of dtype int32 or int64, but got ", name_of(indices.dtype()));
  Dims sizes = indices.sizes();
  check(grad.ndim() >= 1 && rows >= 0, "embedding_dense_backward: expected rows of gradients");
  sizes.push_back(grad.sizes().back());
  check(grad.sizes() == sizes, "embedding_dense_backward: expected a gradient of shape ", to_string(sizes),
        ", but got ", grad.sizes());
  return {Dims{rows, sizes.back()}, grad.dtype(), {}, grad.device()};
}

std::vector<Tensor> gradient_of_embedding(const ops::GradArgs& args) {
  const auto& in = args.inputs;
  std::vector<Tensor> out(5);
  if (!args.needs(0)) return out;
  if (in[4].to_bool())
    out[0] = ops::embedding_sparse_backward(args.grad_outputs[0], in[1].to_tensor(), in[0].to_tensor().sizes()[0],
                                            in[2].to_int(), in[3].to_bool());
  else
    out[0] = ops::embedding_dense_backward(args.grad_outputs[0], in[1].to_tensor(), in[0].to_tensor().sizes()[0],
                                           in[2].to_int(), in[3].to_bool());
  return out;
}

// The rows of the table's incoming gradient that the indices name; zeros for padding.
std::vector<Tensor> gradient_of_embedding_backward(const ops::GradArgs& args) {
  using gradient::Expr;
  const auto& in = args.inputs;
  const Tensor &g = args.grad_outputs[0], &indices = in[1].to_tensor();
  std::vector<Tensor> out(5);
  if (!args.needs(0)) return out;
  Expr rows = ops::embedding(g, indices, int64_t{-1});
  const int64_t padding = in[3].to_int();
  Dims column = indices.sizes();
  column.push_back(1);
  if (padding >= 0) {
    const Tensor kept = ops::ne(indices, ops::Scalar(padding));
    rows = rows * Expr(ops::to(ops::reshape(kept, column), g.dtype()));
  }
  if (in[4].to_bool()) {
    const Tensor ones = ops::ones(column, {.dtype = g.dtype(), .device = g.device()});
    const Tensor counts = ops::embedding_dense_backward(ones, indices, in[2].to_int(), int64_t{-1}, false);
    rows = rows / Expr(ops::embedding(counts, indices, int64_t{-1}));
  }
  out[0] = rows.tensor();
  return out;
}

// --- index_select

TensorMeta index_select_meta(const Tensor& x, int64_t dim, const Tensor& index) {
  dim = wrap_dim(dim, x.ndim());
  check(index.ndim() <= 1, "index_select(): Index is supposed to be a vector, but got dim: ", index.ndim());
  check(index.dtype() == DType::kInt64 || index.dtype() == DType::kInt32,
        "index_select(): Expected dtype int32 or int64 for index");
  Dims sizes = x.sizes();
  if (!sizes.empty()) sizes[dim] = index.numel();
  return {std::move(sizes), x.dtype(), {}, x.device()};
}

std::vector<Tensor> gradient_of_index_select(const ops::GradArgs& args) {
  const auto& in = args.inputs;
  if (!args.needs(0)) return std::vector<Tensor>(3);
  return {ops::index_add(gradient::zeros_like(in[0]), in[1].to_int(), in[2].to_tensor(), args.grad_outputs[0]),
          Tensor(), Tensor()};
}

OP("aten::embedding")
    .set<ops::BatchIndependent>([](std::span<const ops::Value> v) { return ops::is_constant_tensor(v[0]); })
    .infer(embedding_meta)
    .gradient(gradient_of_embedding)
    .saves("indices");
OP("aten::embedding_dense_backward")
    .infer(embedding_backward_meta)
    .gradient(gradient_of_embedding_backward)
    .saves("indices");
OP("aten::index_select")
    .infer(index_select_meta)
    .gradient(gradient_of_index_select)
    .saves("index")
    .set<WritesInto>(WritesInto::kSameDType, WritesInto::kSharesNothing);
OP("aten::embedding_renorm_");

}  // namespace
}  // namespace tensord::kernels
