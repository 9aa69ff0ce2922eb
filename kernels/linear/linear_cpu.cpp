// linear on the CPU: one product.
#include <optional>

#include "core/ops/op.h"
#include "kernels/gemm/gemm.h"

namespace tensord::kernels {
namespace {

using MaybeTensor = std::optional<Tensor>;

void run_linear(const ops::KernelContext&, const Tensor& input, const Tensor& weight, const MaybeTensor& bias,
                Tensor& out) {
  if (out.numel() == 0) return;
  const int64_t features = input.sizes().back(), outputs = weight.ndim() == 1 ? 1 : weight.sizes()[0];
  const Tensor x = input.contiguous();
  const int64_t rows = out.numel() / outputs;
  const Matrix kernel = weight.ndim() == 1 ? Matrix{weight.raw_data(), features, 1, weight.strides()[0], 1}
                                           : matrix_of(weight).transposed();
  if (bias) start_product(*bias, out);
  gemm(out.dtype(), 1, {x.raw_data(), rows, features, features, 1}, kernel, bias ? 1 : 0,
       {out.raw_data(), rows, outputs, outputs, 1});
}

IMPL("aten::linear", kCPU, &run_linear);

}  // namespace
}  // namespace tensord::kernels
