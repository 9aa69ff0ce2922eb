// The backward of softmax and log_softmax over whole tensors.
#include <algorithm>

#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "kernels/norm/softmax.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;

template <class T>
void run_softmax_backward(const Tensor& g, const Tensor& y, int64_t dim, bool is_log, T* out) {
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < y.ndim(); ++d) (d < dim ? outer : inner) *= d == dim ? 1 : y.sizes()[d];
  const int64_t length = y.ndim() == 0 ? 1 : y.sizes()[dim];
  const T *from = y.data<T>(), *incoming = g.data<T>();
  const double row_ns = (is_log ? 0.5 : 0.2) * static_cast<double>(length);
  if (inner == 1) {
    return parallel_for_cost(outer, row_ns, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        softmax_backward_row(incoming + i * length, from + i * length, out + i * length, length, is_log);
    });
  }
  // Blocks of columns, so that calls with many rows and calls with many columns are both divided.
  constexpr int64_t kColumns = 256;
  const int64_t blocks = (inner + kColumns - 1) / kColumns;
  parallel_for_cost(outer * blocks, row_ns * static_cast<double>(std::min(kColumns, inner)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        const int64_t column = i % blocks * kColumns, offset = i / blocks * length * inner + column;
                        softmax_backward_columns(incoming + offset, from + offset, out + offset, length, inner,
                                                 std::min(kColumns, inner - column), is_log);
                      }
                    });
}

template <class T>
void run_as(const Tensor& g, const Tensor& y, int64_t dim, bool is_log, const Tensor& out) {
  const Tensor incoming = g.to(dtype_of<T>).contiguous(), from = y.to(dtype_of<T>).contiguous();
  if (out.dtype() == dtype_of<T>) return run_softmax_backward<T>(incoming, from, dim, is_log, out.data<T>());
  const Tensor wide = Tensor::empty(out.sizes(), dtype_of<T>);
  run_softmax_backward<T>(incoming, from, dim, is_log, wide.data<T>());
  out.copy_from(wide);
}

void backward(const Tensor& g, const Tensor& y, int64_t dim, bool is_log, const Tensor& out) {
  if (out.numel() == 0) return;
  dim = wrap_dim(dim, y.ndim());
  if (y.dtype() == DType::kFloat64)
    run_as<double>(g, y, dim, is_log, out);
  else
    run_as<float>(g, y, dim, is_log, out);
}

template <bool kIsLog>
void backward_kernel(const KernelContext&, const Tensor& g, const Tensor& y, int64_t dim, DType, Tensor& out) {
  backward(g, y, dim, kIsLog, out);
}
IMPL("aten::_softmax_backward_data", kCPU, backward_kernel<false>);
IMPL("aten::_log_softmax_backward_data", kCPU, backward_kernel<true>);

}  // namespace
}  // namespace tensord::kernels
