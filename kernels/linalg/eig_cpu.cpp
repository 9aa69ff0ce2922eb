// Eigenvalues and eigenvectors of general matrices by LAPACK.
#include <algorithm>
#include <optional>

#include "kernels/linalg/lapack_complex.h"

namespace tensord::kernels::linalg {
namespace {

constexpr const char* kEigName = "linalg.eig";

// LAPACK returns the vectors of real matrices as real parts, followed by imaginary parts for pairs of conjugates.
template <class T>
void unpack_vectors(const T* packed, const T* imag, int64_t n, std::complex<T>* out) {
  for (int64_t c = 0; c < n; ++c) {
    const T* column = packed + c * n;
    if (imag[c] == 0) {
      for (int64_t r = 0; r < n; ++r) out[c * n + r] = column[r];
      continue;
    }
    for (int64_t r = 0; r < n; ++r) {
      out[c * n + r] = {column[r], column[n + r]};
      out[(c + 1) * n + r] = {column[r], -column[n + r]};
    }
    ++c;
  }
}

template <class T>
void run_real(const Tensor& a, bool has_vectors, const Tensor& values, const Tensor& vectors, const Tensor& codes) {
  using C = std::complex<T>;
  const Dims batch = batch_of(a);
  const int n = static_cast<int>(rows_of(a)), lda = leading(n), one = 1, query = -1, ldv = has_vectors ? lda : 1;
  const char none = 'N', job = has_vectors ? 'V' : 'N';
  T answer = 0;
  int info = 0;
  geev_of(&none, &job, &n, static_cast<T*>(nullptr), &lda, nullptr, nullptr, nullptr, &one, nullptr, &ldv, &answer,
          &query, &info);
  const int size = work_size(answer);
  for_each_range(count_of(batch), 10 * cost_of(n, n), [&](int64_t begin, int64_t end) {
    const Scratch<T> work(size), real(n), imag(n), packed(has_vectors ? int64_t{n} * n : 1);
    for (int64_t i = begin; i < end; ++i) {
      geev_of(&none, &job, &n, LapackMatrix<T>(a, batch, i).get(), &lda, real.get(), imag.get(), nullptr, &one,
              packed.get(), &ldv, work.get(), &size, codes.data<int32_t>() + i);
      C* own = values.data<C>() + i * n;
      for (int k = 0; k < n; ++k) own[k] = {real.get()[k], imag.get()[k]};
      if (has_vectors) unpack_vectors(packed.get(), imag.get(), n, matrix_data<C>(vectors, batch, i));
    }
  });
}

template <class C>
void run_complex(const Tensor& a, bool has_vectors, const Tensor& values, const Tensor& vectors, const Tensor& codes) {
  using T = typename C::value_type;
  const Dims batch = batch_of(a);
  const int n = static_cast<int>(rows_of(a)), lda = leading(n), one = 1, query = -1, ldv = has_vectors ? lda : 1;
  const char none = 'N', job = has_vectors ? 'V' : 'N';
  C answer = 0;
  T written = 0;  // referenced even when only the size is asked for
  int info = 0;
  Lapack<C>::geev(&none, &job, &n, nullptr, &lda, nullptr, nullptr, &one, nullptr, &ldv, &answer, &query, &written,
                  &info, 1, 1);
  const int size = work_size(answer);
  for_each_range(count_of(batch), 20 * cost_of(n, n), [&](int64_t begin, int64_t end) {
    const Scratch<C> work(size);
    const Scratch<T> reals(int64_t{2} * n);
    for (int64_t i = begin; i < end; ++i) {
      std::optional<LapackMatrix<C>> own;
      if (has_vectors) own.emplace(vectors, batch, i);
      Lapack<C>::geev(&none, &job, &n, LapackMatrix<C>(a, batch, i).get(), &lda, values.data<C>() + i * n, nullptr,
                      &one, own ? own->get() : nullptr, &ldv, work.get(), &size, reals.get(), codes.data<int32_t>() + i,
                      1, 1);
    }
  });
}

// Eigenvalues, and eigenvectors when asked for.
std::pair<Tensor, Tensor> eigen(const Tensor& given, bool has_vectors) {
  check_square(kEigName, given);
  check_real(kEigName, given);
  check_lapack_sizes(kEigName, rows_of(given), columns_of(given));
  const Dims batch = batch_of(given);
  const DType dtype = complex_dtype(given.dtype());
  const ops::TensorMeta meta = column_major(given.sizes(), given);
  const Dims value_sizes = with(batch, {rows_of(given)});
  if (given.is_meta()) {
    return {Tensor::meta(value_sizes, dtype, given.device()),
            Tensor::meta_strided(meta.sizes, meta.strides, dtype, given.device())};
  }
  const Tensor values = Tensor::empty(value_sizes, dtype);
  const Tensor vectors = has_vectors ? Tensor::empty_strided(meta.sizes, meta.strides, dtype) : Tensor();
  if (given.numel() == 0) return {values, vectors};
  const Tensor a = Tensor::empty_strided(meta.sizes, meta.strides, meta.dtype),
               codes = Tensor::empty(batch, DType::kInt32);
  a.copy_from(given);
  // LAPACK corrupts the heap when a matrix contains infinities.
  for (int64_t i = 0; i < count_of(batch); ++i) {
    check(is_finite(a, batch, i), "torch.linalg.eig: input tensor should not contain infs or NaNs.");
  }
  dispatch_lapack(a.dtype(), kEigName, [&]<class T>() {
    if constexpr (is_complex_type<T>)
      run_complex<T>(a, has_vectors, values, vectors, codes);
    else
      run_real<T>(a, has_vectors, values, vectors, codes);
  });
  check_info(kEigName, codes);
  return {values, vectors};
}

std::tuple<Tensor, Tensor> run_linalg_eig(const Tensor& a) {
  const auto [values, vectors] = eigen(a, true);
  return {values, vectors};
}

Tensor run_linalg_eigvals(const Tensor& a) { return eigen(a, false).first; }

IMPL("aten::linalg_eig", kCPU, run_linalg_eig);
IMPL("aten::linalg_eigvals", kCPU, run_linalg_eigvals);

}  // namespace
}  // namespace tensord::kernels::linalg
