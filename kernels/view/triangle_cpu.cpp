// Triangles of matrices.
#include <algorithm>

#include "core/ops/op.h"
#include "core/tensor/strided_copy.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;

// Keeps columns c with c - r <= k (lower) or c - r >= k (upper); the rest is 0.
template <bool kLower>
void triangle_kernel(const KernelContext&, const Tensor& x, int64_t k, Tensor& out) {
  if (x.numel() == 0) return;
  strided_copy(out, x);
  const int64_t rows = x.size(-2), columns = x.size(-1), matrices = x.numel() / (rows * columns);
  k = std::clamp<int64_t>(k, -rows - 1, columns + 1);
  dispatch_all(x.dtype(), "triu", [&]<class T>() {
    T* to = out.data<T>();
    for (int64_t m = 0; m < matrices; ++m) {
      for (int64_t r = 0; r < rows; ++r, to += columns) {
        const int64_t edge = std::clamp<int64_t>(r + k + (kLower ? 1 : 0), 0, columns);
        if (kLower)
          std::fill(to + edge, to + columns, T(0));
        else
          std::fill(to, to + edge, T(0));
      }
    }
  });
}

IMPL("aten::tril", kCPU, triangle_kernel<true>);
IMPL("aten::triu", kCPU, triangle_kernel<false>);

}  // namespace
}  // namespace tensord::kernels
