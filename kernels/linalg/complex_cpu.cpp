// Operators on complex matrices that LAPACK implements.
#include "kernels/linalg/complex.h"

#include "kernels/linalg/lapack_complex.h"

namespace tensord::kernels::linalg {

void factor_lu_complex(const Tensor& a, const Tensor& pivots, const Tensor& info) {
  const Dims batch = batch_of(a);
  const int m = static_cast<int>(rows_of(a)), n = static_cast<int>(columns_of(a)), lda = leading(m),
            steps = std::min(m, n);
  dispatch_complex(a.dtype(), "linalg.lu_factor", [&]<class T>() {
    for_each_range(count_of(batch), cost_of(m, n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int* code = info.data<int32_t>() + i;
        *code = 0;
        if (steps == 0) continue;
        Lapack<T>::getrf(&m, &n, LapackMatrix<T>(a, batch, i).get(), &lda, pivots.data<int32_t>() + i * steps, code);
      }
    });
  });
}

void factor_cholesky_complex(const Tensor& a, bool is_upper, const Tensor& info) {
  const Dims batch = batch_of(a);
  const int n = static_cast<int>(rows_of(a)), lda = leading(n);
  const char triangle = is_upper ? 'U' : 'L';
  dispatch_complex(a.dtype(), "linalg.cholesky", [&]<class T>() {
    for_each_range(count_of(batch), cost_of(n, n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const LapackMatrix<T> own(a, batch, i);
        T* matrix = own.get();
        Lapack<T>::potrf(&triangle, &n, matrix, &lda, info.data<int32_t>() + i, 1);
        // Zeroes the other triangle, as PyTorch does.
        for (int64_t c = 0; c < n; ++c) {
          for (int64_t r = is_upper ? c + 1 : 0; r < (is_upper ? n : c); ++r) matrix[c * lda + r] = T(0);
        }
      }
    });
  });
}

void solve_triangular_complex(const Tensor& a, const Tensor& x, bool is_upper, bool is_left, bool is_unit) {
  const ops::TensorMeta meta = column_major(a.sizes(), a);
  const Tensor columns = Tensor::empty_strided(meta.sizes, meta.strides, meta.dtype);
  columns.copy_from(a);
  const Dims batch = batch_of(x);
  const int m = static_cast<int>(rows_of(x)), n = static_cast<int>(columns_of(x));
  const int lda = leading(rows_of(a)), ldx = leading(m);
  const char side = is_left ? 'L' : 'R', triangle = is_upper ? 'U' : 'L', turn = 'N', diagonal = is_unit ? 'U' : 'N';
  dispatch_complex(x.dtype(), "linalg.solve_triangular", [&]<class T>() {
    for_each_range(count_of(batch), cost_of(m, n), [&](int64_t begin, int64_t end) {
      const T one(1);
      for (int64_t i = begin; i < end; ++i) {
        Lapack<T>::trsm(&side, &triangle, &turn, &diagonal, &m, &n, &one,
                        LapackMatrix<T>(columns, batch, i, LapackMatrix<T>::Use::kRead).get(), &lda,
                        LapackMatrix<T>(x, batch, i).get(), &ldx, 1, 1, 1, 1);
      }
    });
  });
}

}  // namespace tensord::kernels::linalg
