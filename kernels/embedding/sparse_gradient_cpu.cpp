#include "kernels/embedding/sparse_gradient.h"

#include "core/ops/sparse.h"
#include "kernels/base/numbers.h"
#include "kernels/expr/compose.h"
#include "ops/embedding.h"
#include "ops/view.h"

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
  const Tensor order = indices.to(Device{}).to(DType::kInt64).contiguous();
  const int64_t count = order.numel();
  std::vector<int64_t> at, kept;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = order.data<int64_t>()[i];
    if (row < 0 || row >= rows) fail(ErrorCode::kOutOfRange, "index ", row, " is out of range");
    if (row == padding) continue;
    at.push_back(row);
    kept.push_back(i);
  }
  const auto nnz = static_cast<int64_t>(at.size());
  Tensor values = ops::reshape(grad, Dims{count, grad.sizes().back()});
  if (nnz < count) values = ops::index_select(values, int64_t{0}, vector_of(kept).to(grad.device()));
  const auto out = ops::SparseTensor::coo(Dims{rows, grad.sizes().back()}, ops::unsqueeze(vector_of(at), 0),
                                          std::move(values), false);
  return ops::box(out);
}

}  // namespace tensord::kernels
