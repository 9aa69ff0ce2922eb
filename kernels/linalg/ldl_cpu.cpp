// A = L D Lᵀ of symmetric matrices by LAPACK.
#include "kernels/linalg/algebra.h"
#include "kernels/linalg/lapack_complex.h"
#include "ops/view.h"

namespace tensord::kernels::linalg {
namespace {

using ops::KernelContext;
using ops::TensorMeta;

constexpr const char* kFactor = "torch.linalg.ldl_factor_ex";
constexpr const char* kSolve = "torch.linalg.ldl_solve";

template <class T>
void run_sytrf(const Tensor& a, [[maybe_unused]] bool is_hermitian, const Tensor& pivots, const Tensor& info) {
  auto sytrf = Lapack<T>::sytrf;
  if constexpr (is_complex_type<T>) {
    if (is_hermitian) sytrf = Lapack<T>::hetrf;
  }
  const Dims batch = batch_of(a);
  const int n = static_cast<int>(rows_of(a)), lda = leading(n), query = -1;
  const char triangle = 'L';
  T answer = 0;
  int unused = 0;
  sytrf(&triangle, &n, nullptr, &lda, nullptr, &answer, &query, &unused, 1);
  const int size = work_size(answer);
  for_each_range(count_of(batch), cost_of(n, n), [&](int64_t begin, int64_t end) {
    const Scratch<T> work(size);
    for (int64_t i = begin; i < end; ++i) {
      sytrf(&triangle, &n, LapackMatrix<T>(a, batch, i).get(), &lda, pivots.data<int32_t>() + i * n, work.get(), &size,
            info.data<int32_t>() + i, 1);
    }
  });
}

void ldl_factor_kernel(const KernelContext&, const Tensor& a, bool is_hermitian, bool check_errors, Tensor& ld,
                       Tensor& pivots, Tensor& info) {
  ld.copy_from(ops::tril(a));
  info.copy_from(Tensor::scalar(int32_t{0}));
  if (a.numel() == 0) return;
  dispatch_lapack(a.dtype(), kFactor, [&]<class T>() { run_sytrf<T>(ld, is_hermitian, pivots, info); });
  if (check_errors) check_info(kFactor, info);
}

IMPL("aten::linalg_ldl_factor_ex", kCPU, ldl_factor_kernel);

// Whether LAPACK accepts the pivots: rows counted from 1, or negative ones in pairs of equal numbers.
bool are_pivots(const int32_t* pivots, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (pivots[i] == 0 || pivots[i] > n || pivots[i] < -n) return false;
    if (pivots[i] < 0 && (i + 1 == n || pivots[i + 1] != pivots[i])) return false;
    if (pivots[i] < 0) ++i;
  }
  return true;
}

template <class T>
void run_sytrs(const Tensor& ld, [[maybe_unused]] bool is_hermitian, const Tensor& pivots, const Tensor& x) {
  auto sytrs = Lapack<T>::sytrs;
  if constexpr (is_complex_type<T>) {
    if (is_hermitian) sytrs = Lapack<T>::hetrs;
  }
  const Dims batch = batch_of(x);
  const int n = static_cast<int>(rows_of(ld)), columns = static_cast<int>(columns_of(x)), lda = leading(n);
  const char triangle = 'L';
  const Tensor rows_of_pivots = unsqueezed(pivots, -1);
  for_each_range(count_of(batch), cost_of(n, columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto* own = static_cast<const int32_t*>(matrix_at(rows_of_pivots, batch, i).data);
      check(are_pivots(own, n), kSolve, ": pivots are not those of a factorization of ", n, " rows");
      int code = 0;
      sytrs(&triangle, &n, &columns, LapackMatrix<T>(ld, batch, i, LapackMatrix<T>::Use::kRead).get(), &lda, own,
            LapackMatrix<T>(x, batch, i).get(), &lda, &code, 1);
      check_internal(code == 0, kSolve, ": LAPACK refuses argument ", -code);
    }
  });
}

void ldl_solve_kernel(const KernelContext&, const Tensor& ld, const Tensor& pivots, const Tensor& b, bool is_hermitian,
                      Tensor& out) {
  out.copy_from(b);
  if (out.numel() == 0) return;
  const TensorMeta meta = column_major(ld.sizes(), ld);
  Tensor columns = Tensor::empty_strided(meta.sizes, meta.strides, meta.dtype);
  columns.copy_from(ld);
  const Tensor order = pivots.to(DType::kInt32).contiguous();
  dispatch_lapack(b.dtype(), kSolve, [&]<class T>() { run_sytrs<T>(columns, is_hermitian, order, out); });
}

IMPL("aten::linalg_ldl_solve", kCPU, ldl_solve_kernel);

}  // namespace
}  // namespace tensord::kernels::linalg
