// Gradients of tables as sparse tensors, for embedding(…, sparse=True).
#include "kernels/embedding/sparse_gradient.h"

namespace tensord::kernels {
namespace {

OP("aten::embedding_sparse_backward")
    .impl([](const Tensor& grad, const Tensor& indices, int64_t rows, int64_t padding, bool scales) {
      check(!scales, "scale_grad_by_freq not supported with sparse gradients");
      return sparse_table_gradient(grad, indices, rows, padding);
    })
    .composite()
    .dynamic_shape();

}  // namespace
}  // namespace tensord::kernels
