// Singular values and vectors by LAPACK.
#include <algorithm>
#include <optional>

#include "kernels/linalg/algebra.h"
#include "kernels/linalg/lapack_complex.h"

namespace tensord::kernels::linalg {
namespace {

using SvdDriver = std::optional<std::string>;

// A column-major copy of matrix `index` in `to`.
template <class T>
void copy_matrix(const Tensor& x, const Dims& batch, int64_t index, T* to) {
  const Matrix from = matrix_at(x, batch, index);
  for (int64_t c = 0; c < from.cols; ++c) {
    const T* column = static_cast<const T*>(from.data) + c * from.col_stride;
    for (int64_t r = 0; r < from.rows; ++r) *to++ = column[r * from.row_stride];
  }
}

template <class T>
void run_gesdd(const Tensor& a, char job, const Tensor& u, const Tensor& s, const Tensor& vh, const Tensor& codes) {
  const Dims batch = batch_of(a);
  const int m = static_cast<int>(rows_of(a)), n = static_cast<int>(columns_of(a)), lda = leading(m), query = -1;
  const int steps = std::min(m, n), ldu = leading(m), ldvh = job == 'N' ? 1 : leading(rows_of(vh));
  T answer = 0;
  int info = 0;
  using R = decltype(std::abs(T()));
  // Complex routines need an array of real numbers too.
  const auto gesdd = [&](T* matrix, R* values, T* left, T* right, T* work, const int* size, [[maybe_unused]] R* reals,
                         int* integers, int* code) {
    if constexpr (is_complex_type<T>) {
      Lapack<T>::gesdd(&job, &m, &n, matrix, &lda, values, left, &ldu, right, &ldvh, work, size, reals, integers, code,
                       1);
    } else {
      Lapack<T>::gesdd(&job, &m, &n, matrix, &lda, values, left, &ldu, right, &ldvh, work, size, integers, code, 1);
    }
  };
  gesdd(nullptr, nullptr, nullptr, nullptr, &answer, &query, nullptr, nullptr, &info);
  // The size of rwork by LAPACK's documentation: 7 times the smaller size for values alone, else its square five times
  // or with the larger size.
  const int64_t small = steps, large = std::max(m, n);
  const int64_t real_size =
      !is_complex_type<T> ? 1
      : job == 'N'        ? 7 * small
                          : std::max(5 * small * small + 5 * small, 2 * large * small + 2 * small * small + small);
  const int size = work_size(answer);
  for_each_range(count_of(batch), 4 * cost_of(m, n), [&](int64_t begin, int64_t end) {
    const Scratch<T> work(size, read_beyond<T>(large)), copy(int64_t{m} * n, read_beyond<T>(m));
    const Scratch<R> reals(real_size);
    const Scratch<int32_t> integers(int64_t{8} * steps);
    for (int64_t i = begin; i < end; ++i) {
      int32_t& code = codes.data<int32_t>()[i];
      code = is_finite(a, batch, i) ? 0 : kNotFinite;
      if (code != 0) continue;
      copy_matrix(a, batch, i, copy.get());
      std::optional<LapackMatrix<T>> left, right;
      if (job != 'N') left.emplace(u, batch, i), right.emplace(vh, batch, i);
      gesdd(copy.get(), s.data<R>() + i * steps, left ? left->get() : nullptr, right ? right->get() : nullptr,
            work.get(), &size, reals.get(), integers.get(), &code);
    }
  });
}

// Without rows or columns there are no singular values, and any vectors are right: those of the identity.
void fill_identity(const Tensor& x) {
  if (x.numel() == 0) return;
  const Tensor one = identity(rows_of(x), x);
  if (rows_of(x) == columns_of(x)) x.copy_from(one);
}

void svd_kernel(const ops::KernelContext&, const Tensor& a, bool is_full, bool has_vectors, const SvdDriver&, Tensor& u,
                Tensor& s, Tensor& vh) {
  if (a.numel() == 0) {
    if (!has_vectors) return;
    fill_identity(u);
    return fill_identity(vh);
  }
  const char job = !has_vectors ? 'N' : is_full ? 'A' : 'S';
  const Tensor codes = Tensor::empty(batch_of(a), DType::kInt32);
  dispatch_lapack(a.dtype(), "linalg.svd", [&]<class T>() { run_gesdd<T>(a, job, u, s, vh, codes); });
  check_info("linalg.svd", codes);
}

IMPL("aten::_linalg_svd", kCPU, svd_kernel);

}  // namespace
}  // namespace tensord::kernels::linalg
