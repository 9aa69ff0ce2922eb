// Eigenvalues and vectors of symmetric matrices by LAPACK.
#include "kernels/linalg/eigh.h"

#include <algorithm>

#include "kernels/linalg/lapack_complex.h"

namespace tensord::kernels::linalg {
namespace {

using ops::TensorMeta;

template <class T>
void run_syevd(const Tensor& a, bool is_upper, bool has_vectors, const Tensor& values, const Tensor& codes) {
  const Dims batch = batch_of(a);
  const int n = static_cast<int>(rows_of(a)), lda = leading(n), query = -1;
  const char job = has_vectors ? 'V' : 'N', triangle = is_upper ? 'U' : 'L';
  T answer = 0;
  int integer_answer = 0, info = 0;
  Lapack<T>::syevd(&job, &triangle, &n, nullptr, &lda, nullptr, &answer, &query, &integer_answer, &query, &info, 1, 1);
  const int size = work_size(answer), integer_size = std::max(integer_answer, 1);
  for_each_range(count_of(batch), 2 * cost_of(n, n), [&](int64_t begin, int64_t end) {
    const Scratch<T> work(size);
    const Scratch<int32_t> integers(integer_size);
    for (int64_t i = begin; i < end; ++i) {
      int32_t& code = codes.data<int32_t>()[i];
      code = is_finite(a, batch, i) ? 0 : n;
      if (code != 0) continue;
      Lapack<T>::syevd(&job, &triangle, &n, LapackMatrix<T>(a, batch, i).get(), &lda, values.data<T>() + i * n,
                       work.get(), &size, integers.get(), &integer_size, &code, 1, 1);
    }
  });
}

template <class T>
void run_heevd(const Tensor& a, bool is_upper, bool has_vectors, const Tensor& values, const Tensor& codes) {
  using R = typename T::value_type;
  const Dims batch = batch_of(a);
  const int n = static_cast<int>(rows_of(a)), lda = leading(n), query = -1;
  const char job = has_vectors ? 'V' : 'N', triangle = is_upper ? 'U' : 'L';
  T answer = 0;
  R real_answer = 0;
  int integer_answer = 0, info = 0;
  Lapack<T>::heevd(&job, &triangle, &n, nullptr, &lda, nullptr, &answer, &query, &real_answer, &query, &integer_answer,
                   &query, &info, 1, 1);
  const int size = work_size(answer), real_size = work_size(real_answer), integer_size = std::max(integer_answer, 1);
  for_each_range(count_of(batch), 4 * cost_of(n, n), [&](int64_t begin, int64_t end) {
    const Scratch<T> work(size);
    const Scratch<R> reals(real_size);
    const Scratch<int32_t> integers(integer_size);
    for (int64_t i = begin; i < end; ++i) {
      int32_t& code = codes.data<int32_t>()[i];
      code = is_finite(a, batch, i) ? 0 : n;
      if (code != 0) continue;
      Lapack<T>::heevd(&job, &triangle, &n, LapackMatrix<T>(a, batch, i).get(), &lda, values.data<R>() + i * n,
                       work.get(), &size, reals.get(), &real_size, integers.get(), &integer_size, &code, 1, 1);
    }
  });
}

void eigh_kernel(const ops::KernelContext&, const Tensor& a, const std::string& uplo, bool has_vectors, Tensor& values,
                 Tensor& vectors) {
  if (a.numel() == 0) return;
  Tensor work = vectors;
  if (!has_vectors) {
    const TensorMeta meta = column_major(a.sizes(), a);
    work = Tensor::empty_strided(meta.sizes, meta.strides, meta.dtype);
  }
  work.copy_from(a);
  const Tensor codes = Tensor::empty(batch_of(a), DType::kInt32);
  dispatch_lapack(a.dtype(), "linalg_eigh_cpu", [&]<class T>() {
    if constexpr (is_complex_type<T>)
      run_heevd<T>(work, is_upper_triangle(uplo), has_vectors, values, codes);
    else
      run_syevd<T>(work, is_upper_triangle(uplo), has_vectors, values, codes);
  });
  check_info("linalg.eigh", codes);
}

IMPL("aten::_linalg_eigh", kCPU, eigh_kernel);

}  // namespace
}  // namespace tensord::kernels::linalg
