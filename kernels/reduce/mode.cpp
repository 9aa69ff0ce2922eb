// mode: the most frequent element of each row, and the smallest of equally frequent ones; its index is the last one in
// sorted order.
#include "kernels/expr/expr.h"
#include "kernels/reduce/dims.h"

namespace tensord::kernels {
namespace {

using ops::TensorMeta;

OP("aten::mode")
    .infer([](const Tensor& in, int64_t dim, bool keepdim) {
      check(in.ndim() == 0 || in.sizes()[wrap_dim(dim, in.ndim())] > 0, "mode(): Expected reduction dim ", dim,
            " to have non-zero size.");
      const ReducedDims reduced(in, Dims{dim});
      return std::vector<TensorMeta>{reduced.meta(in, keepdim, in.dtype()), reduced.meta(in, keepdim, DType::kInt64)};
    })
    .gradient(gradient::of_first(chosen_gradient))
    .saves("result1")
    .reduction();

}  // namespace
}  // namespace tensord::kernels
