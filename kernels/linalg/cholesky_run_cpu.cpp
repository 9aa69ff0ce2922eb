// Cholesky's factors of batches.
#include "kernels/linalg/cholesky.h"

#include <algorithm>

#include "kernels/linalg/complex.h"
#include "kernels/linalg/linalg.h"

namespace tensord::kernels::linalg {
namespace {

void cholesky_kernel(const ops::KernelContext&, const Tensor& a, bool is_upper, bool check_errors, Tensor& l,
                     Tensor& info) {
  const Dims batch = batch_of(a);
  const int64_t n = rows_of(a);
  l.copy_from(a);
  if (is_complex(a.dtype())) {
    factor_cholesky_complex(l, is_upper, info);
    if (check_errors) check_info("linalg.cholesky_ex", info);
    return;
  }
  run_batches(count_of(batch), n * n * n / 6, [&](int64_t i) {
    const Matrix matrix = matrix_at(l, batch, i);
    info.data<int32_t>()[i] = n == 0 ? 0 : factor_cholesky(a.dtype(), is_upper ? matrix.transposed() : matrix);
  });
  if (check_errors) check_info("linalg.cholesky_ex", info);
}

IMPL("aten::linalg_cholesky_ex", kCPU, cholesky_kernel);

}  // namespace

Tensor first_zeros(const Tensor& x) {
  const int64_t size = x.sizes().back();
  const Dims batch(x.sizes().span().first(x.sizes().size() - 1));
  if (x.is_meta()) return Tensor::meta(batch, DType::kInt32, x.device());
  const Tensor values = x.to(Device{}).to(DType::kFloat64).contiguous(), out = Tensor::empty(batch, DType::kInt32);
  for (int64_t i = 0; i < out.numel(); ++i) {
    const double* first = values.data<double>() + i * size;
    const double* zero = std::find(first, first + size, 0.0);
    out.data<int32_t>()[i] = zero == first + size ? 0 : static_cast<int32_t>(zero - first + 1);
  }
  return out;
}

}  // namespace tensord::kernels::linalg
