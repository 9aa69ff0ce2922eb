// Gradients of tables as sparse tensors, for embedding(…, sparse=True).
#include "kernels/embedding/sparse_gradient.h"

#include "core/ops/sparse.h"
#include "kernels/common/compose.h"

namespace tensord::kernels {

ops::Value sparse_table_gradient(const Tensor& grad, const Tensor& indices, int64_t rows, int64_t padding) {
  check(is_floating(grad.dtype()) || is_complex(grad.dtype()), "expected gradients of floating point numbers, but got ",
        describe(grad));
  check(indices.dtype() == DType::kInt64 || indices.dtype() == DType::kInt32,
        "expected indices of dtype int32 or int64, but got ", name_of(indices.dtype()));
  Dims expected = indices.sizes();
  check(grad.ndim() >= 1 && rows >= 0, "expected rows of gradients");
  expected.push_back(grad.sizes().back());
  check(grad.sizes() == expected, "expected a gradient of shape ", expected, ", but got ", grad.sizes());
  const Tensor order = indices.to(DType::kInt64).contiguous();
  const int64_t count = order.numel();
  std::vector<int64_t> at, kept;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = order.data<int64_t>()[i];
    if (row < 0 || row >= rows) fail(ErrorCode::kOutOfRange, "index ", row, " is out of range");
    if (row == padding) continue;
    at.push_back(row);
    kept.push_back(i);
  }
  const auto tensor_of = [](const std::vector<int64_t>& from, const Dims& sizes) {
    const Tensor out = Tensor::empty(sizes, DType::kInt64);
    std::copy(from.begin(), from.end(), out.data<int64_t>());
    return out;
  };
  const auto nnz = static_cast<int64_t>(at.size());
  Tensor values = compose::reshape(grad, Dims{count, grad.sizes().back()});
  if (nnz < count) values = compose::call("aten::index_select", values, int64_t{0}, tensor_of(kept, Dims{nnz}));
  const auto out =
      ops::SparseTensor::coo(Dims{rows, grad.sizes().back()}, tensor_of(at, Dims{1, nnz}), std::move(values), false);
  return ops::box(out);
}

namespace {

OP("aten::embedding_sparse_backward(Tensor grad, Tensor indices, int num_weights, int padding_idx, bool "
   "scale_grad_by_freq) -> Tensor")
    .direct([](const Tensor& grad, const Tensor& indices, int64_t rows, int64_t padding, bool scales) {
      check(!scales, "scale_grad_by_freq not supported with sparse gradients");
      return sparse_table_gradient(grad, indices, rows, padding);
    })
    .composite()
    .dynamic_shape();

}  // namespace
}  // namespace tensord::kernels
