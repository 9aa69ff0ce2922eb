// Householder reflections by LAPACK.
#include <algorithm>

#include "kernels/linalg/lapack_complex.h"

namespace tensord::kernels::linalg {
namespace {

using ops::KernelContext;
using ops::TensorMeta;

void check_result(const char* op, int info) { check_internal(info == 0, op, ": LAPACK answers ", info); }

template <class T>
void run_geqrf(const Tensor& a, const Tensor& tau) {
  const Dims batch = batch_of(a);
  const int m = static_cast<int>(rows_of(a)), n = static_cast<int>(columns_of(a)), lda = leading(m), query = -1;
  const int steps = std::min(m, n);
  if (steps == 0) return;
  T answer = 0;
  int info = 0;
  Lapack<T>::geqrf(&m, &n, nullptr, &lda, nullptr, &answer, &query, &info);
  const int size = work_size(answer);
  for_each_range(count_of(batch), cost_of(m, n), [&](int64_t begin, int64_t end) {
    const Scratch<T> work(size);
    for (int64_t i = begin; i < end; ++i) {
      int code = 0;
      Lapack<T>::geqrf(&m, &n, LapackMatrix<T>(a, batch, i).get(), &lda, tau.data<T>() + i * steps, work.get(), &size,
                       &code);
      check_result("geqrf", code);
    }
  });
}

IMPL("aten::geqrf", kCPU, [](const KernelContext&, const Tensor& a, Tensor& out, Tensor& tau) {
  out.copy_from(a);
  dispatch_lapack(a.dtype(), "geqrf_cpu", [&]<class T>() { run_geqrf<T>(out, tau); });
});

template <class T>
void run_orgqr(const Tensor& a, const Tensor& tau) {
  const Dims batch = batch_of(a);
  const int m = static_cast<int>(rows_of(a)), n = static_cast<int>(columns_of(a)), lda = leading(m), query = -1;
  const int k = static_cast<int>(tau.sizes().back());
  if (n == 0) return;
  T answer = 0;
  int info = 0;
  Lapack<T>::orgqr(&m, &n, &k, nullptr, &lda, nullptr, &answer, &query, &info);
  const int size = work_size(answer);
  for_each_range(count_of(batch), cost_of(m, n), [&](int64_t begin, int64_t end) {
    const Scratch<T> work(size);
    for (int64_t i = begin; i < end; ++i) {
      int code = 0;
      Lapack<T>::orgqr(&m, &n, &k, LapackMatrix<T>(a, batch, i).get(), &lda, tau.data<T>() + i * k, work.get(), &size,
                       &code);
      check_result("orgqr", code);
    }
  });
}

void householder_product_kernel(const KernelContext&, const Tensor& a, const Tensor& tau, Tensor& out) {
  out.copy_from(a);
  const Tensor dense = tau.contiguous();
  dispatch_lapack(a.dtype(), "orgqr_cpu", [&]<class T>() { run_orgqr<T>(out, dense); });
}

IMPL("aten::linalg_householder_product", kCPU, householder_product_kernel);

template <class T>
void run_ormqr(const Tensor& a, const Tensor& tau, const Tensor& c, bool is_left, bool is_transposed) {
  const Dims batch = batch_of(c);
  const int m = static_cast<int>(rows_of(c)), n = static_cast<int>(columns_of(c)), ldc = leading(m), query = -1;
  const int k = static_cast<int>(tau.sizes().back()), lda = leading(rows_of(a));
  const char side = is_left ? 'L' : 'R', turn = !is_transposed ? 'N' : is_complex_type<T> ? 'C' : 'T';
  if (c.numel() == 0 || k == 0) return;
  T answer = 0;
  int info = 0;
  Lapack<T>::ormqr(&side, &turn, &m, &n, &k, nullptr, &lda, nullptr, nullptr, &ldc, &answer, &query, &info, 1, 1);
  const int size = work_size(answer);
  for_each_range(count_of(batch), cost_of(m, n), [&](int64_t begin, int64_t end) {
    const Scratch<T> work(size);
    for (int64_t i = begin; i < end; ++i) {
      int code = 0;
      Lapack<T>::ormqr(&side, &turn, &m, &n, &k, LapackMatrix<T>(a, batch, i, LapackMatrix<T>::Use::kRead).get(), &lda,
                       tau.data<T>() + i * k, LapackMatrix<T>(c, batch, i).get(), &ldc, work.get(), &size, &code, 1, 1);
      check_result("ormqr", code);
    }
  });
}

// A column-major copy.
Tensor in_columns(const Tensor& x) {
  const TensorMeta meta = column_major(x.sizes(), x);
  Tensor out = Tensor::empty_strided(meta.sizes, meta.strides, meta.dtype);
  out.copy_from(x);
  return out;
}

void ormqr_kernel(const KernelContext&, const Tensor& a, const Tensor& tau, const Tensor& other, bool is_left,
                  bool is_transposed, Tensor& out) {
  out.copy_from(other);
  const Tensor columns = in_columns(a), dense = tau.contiguous();
  dispatch_lapack(a.dtype(), "ormqr_cpu",
                  [&]<class T>() { run_ormqr<T>(columns, dense, out, is_left, is_transposed); });
}

IMPL("aten::ormqr", kCPU, ormqr_kernel);

}  // namespace
}  // namespace tensord::kernels::linalg
