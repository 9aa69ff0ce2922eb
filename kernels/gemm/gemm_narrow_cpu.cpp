// f32 products with a transposed right matrix and few rows or columns, as linear layers with small batches have them.
// They are computed as the transposed product, so that the large matrix, the weight, is read in place and the small one
// is packed.
#include <dnnl.h>

#include "core/base/parallel.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/product.h"
#include "kernels/gemm/transpose.h"

namespace tensord::kernels {
namespace {

constexpr int64_t kMaxRows = 128;  // with more, the usual way is as fast
constexpr int64_t kMinDepth = 128;
constexpr int64_t kMaxColumns = 32;

// out = alpha * left @ right^T, all row-major; only rows may have gaps between them.
void multiply_rows(float alpha, const Matrix& left, const Matrix& right, float* out) {
  ProductShape shape{left.rows, right.rows, left.cols, left.row_stride, 1, 1, right.row_stride, right.rows};
  shape.alpha = alpha;
  const double row_ns = 0.02 * static_cast<double>(right.rows * left.cols);
  const int parts = parallel_parts(left.rows, row_ns, thread_budget());
  parallel_run(parts, [&](int part) {
    multiply(shape, static_cast<const float*>(left.data), static_cast<const float*>(right.data), out,
             left.rows * part / parts, left.rows * (part + 1) / parts, thread_product_scratch<float>());
  });
}

}  // namespace

bool try_narrow_gemm(float alpha, const Matrix& a, const Matrix& b, float beta, const Matrix& c) {
  const bool fits = a.col_stride == 1 && b.row_stride == 1 && c.col_stride == 1 && a.row_stride >= a.cols &&
                    b.col_stride >= b.rows && c.row_stride >= c.cols && (beta == 0 || beta == 1);
  if (!fits) return false;
  const int64_t m = c.rows, n = c.cols, k = a.cols;
  const int64_t min_rows = uses_sgemm() ? 32 : 5;  // tiles take up to 4 rows without packing
  const bool has_few_rows = m >= min_rows && m <= kMaxRows && n >= 2 * m && k >= kMinDepth;
  const bool has_few_columns = uses_sgemm() && n > 1 && n <= kMaxColumns && m >= n;
  if (!has_few_rows && !has_few_columns) return false;
  const Tensor turned = Tensor::empty(Dims{n, m}, DType::kFloat32);
  if (has_few_rows) {
    multiply_rows(alpha, b.transposed(), a, turned.data<float>());
  } else {
    const dnnl_status_t status =
        dnnl_sgemm('N', 'T', n, m, k, alpha, static_cast<const float*>(b.data), b.col_stride,
                   static_cast<const float*>(a.data), a.row_stride, 0, turned.data<float>(), m);
    check_internal(status == dnnl_success, "sgemm failed with status ", static_cast<int>(status));
  }
  auto* out = static_cast<float*>(c.data);
  if (beta == 0) {
    transpose_floats(turned.data<float>(), m, n, m, out, c.row_stride);
    return true;
  }
  const Tensor sums = Tensor::empty(Dims{m, n}, DType::kFloat32);
  const float* from = sums.data<float>();
  transpose_floats(turned.data<float>(), m, n, m, sums.data<float>(), n);
  for (int64_t r = 0; r < m; ++r) {
    for (int64_t j = 0; j < n; ++j) out[r * c.row_stride + j] += from[r * n + j];
  }
  return true;
}

}  // namespace tensord::kernels
