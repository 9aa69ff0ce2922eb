#pragma once

#include <complex>

#include "core/tensor/complex.h"
#include "kernels/linalg/lapack.h"

// LAPACK's routines for complex matrices, and those for real ones whose answers are complex. Names are those of real
// routines where the meaning is the same: orgqr is ungqr, a transpose is a conjugate transpose.
#define TENSORD_LAPACK_COMPLEX(T, R, P)                                                                                \
  void P##getrf_(const int*, const int*, T*, const int*, int*, int*);                                                  \
  void P##potrf_(const char*, const int*, T*, const int*, int*, size_t);                                               \
  void P##trsm_(const char*, const char*, const char*, const char*, const int*, const int*, const T*, const T*,        \
                const int*, T*, const int*, size_t, size_t, size_t, size_t);                                           \
  void P##geqrf_(const int*, const int*, T*, const int*, T*, T*, const int*, int*);                                    \
  void P##ungqr_(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*, int*);                  \
  void P##unmqr_(const char*, const char*, const int*, const int*, const int*, const T*, const int*, const T*, T*,     \
                 const int*, T*, const int*, int*, size_t, size_t);                                                    \
  void P##gesdd_(const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*, const int*, T*,          \
                 const int*, R*, int*, int*, size_t);                                                                  \
  void P##heevd_(const char*, const char*, const int*, T*, const int*, R*, T*, const int*, R*, const int*, int*,       \
                 const int*, int*, size_t, size_t);                                                                    \
  void P##geev_(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, T*, const int*, T*,          \
                const int*, R*, int*, size_t, size_t);                                                                 \
  void P##sytrf_(const char*, const int*, T*, const int*, int*, T*, const int*, int*, size_t);                         \
  void P##sytrs_(const char*, const int*, const int*, const T*, const int*, const int*, T*, const int*, int*, size_t); \
  void P##hetrf_(const char*, const int*, T*, const int*, int*, T*, const int*, int*, size_t);                         \
  void P##hetrs_(const char*, const int*, const int*, const T*, const int*, const int*, T*, const int*, int*, size_t); \
  void P##gels_(const char*, const int*, const int*, const int*, T*, const int*, T*, const int*, T*, const int*, int*, \
                size_t);                                                                                               \
  void P##gelsy_(const int*, const int*, const int*, T*, const int*, T*, const int*, int*, const R*, int*, T*,         \
                 const int*, R*, int*);                                                                                \
  void P##gelsd_(const int*, const int*, const int*, T*, const int*, T*, const int*, R*, const R*, int*, T*,           \
                 const int*, R*, int*, int*);                                                                          \
  void P##gelss_(const int*, const int*, const int*, T*, const int*, T*, const int*, R*, const R*, int*, T*,           \
                 const int*, R*, int*);
#define TENSORD_LAPACK_EIGENVALUES(T, P)                                                                          \
  void P##geev_(const char*, const char*, const int*, T*, const int*, T*, T*, T*, const int*, T*, const int*, T*, \
                const int*, int*, size_t, size_t);
extern "C" {
TENSORD_LAPACK_COMPLEX(std::complex<float>, float, c)
TENSORD_LAPACK_COMPLEX(std::complex<double>, double, z)
TENSORD_LAPACK_EIGENVALUES(float, s)
TENSORD_LAPACK_EIGENVALUES(double, d)
}
#undef TENSORD_LAPACK_COMPLEX
#undef TENSORD_LAPACK_EIGENVALUES

namespace tensord::kernels::linalg {

#define TENSORD_LAPACK_COMPLEX_TYPE(T, P)    \
  template <>                                \
  struct Lapack<T> {                         \
    static constexpr auto getrf = P##getrf_; \
    static constexpr auto potrf = P##potrf_; \
    static constexpr auto trsm = P##trsm_;   \
    static constexpr auto geqrf = P##geqrf_; \
    static constexpr auto orgqr = P##ungqr_; \
    static constexpr auto ormqr = P##unmqr_; \
    static constexpr auto gesdd = P##gesdd_; \
    static constexpr auto heevd = P##heevd_; \
    static constexpr auto geev = P##geev_;   \
    static constexpr auto sytrf = P##sytrf_; \
    static constexpr auto sytrs = P##sytrs_; \
    static constexpr auto hetrf = P##hetrf_; \
    static constexpr auto hetrs = P##hetrs_; \
    static constexpr auto gels = P##gels_;   \
    static constexpr auto gelsy = P##gelsy_; \
    static constexpr auto gelsd = P##gelsd_; \
    static constexpr auto gelss = P##gelss_; \
  };
TENSORD_LAPACK_COMPLEX_TYPE(Complex64, c)
TENSORD_LAPACK_COMPLEX_TYPE(Complex128, z)
#undef TENSORD_LAPACK_COMPLEX_TYPE

inline void geev_of(const char* left, const char* right, const int* n, float* a, const int* lda, float* real,
                    float* imag, float* vl, const int* ldvl, float* vr, const int* ldvr, float* work, const int* size,
                    int* info) {
  sgeev_(left, right, n, a, lda, real, imag, vl, ldvl, vr, ldvr, work, size, info, 1, 1);
}
inline void geev_of(const char* left, const char* right, const int* n, double* a, const int* lda, double* real,
                    double* imag, double* vl, const int* ldvl, double* vr, const int* ldvr, double* work,
                    const int* size, int* info) {
  dgeev_(left, right, n, a, lda, real, imag, vl, ldvl, vr, ldvr, work, size, info, 1, 1);
}

template <class R>
int work_size(std::complex<R> answer) {
  return work_size(answer.real());
}

// float, double, and complex numbers of either.
template <class Fn>
decltype(auto) dispatch_lapack(DType dtype, std::string_view op, Fn&& fn) {
  if (is_complex(dtype)) return dispatch_complex(dtype, op, std::forward<Fn>(fn));
  return dispatch_real(dtype, op, std::forward<Fn>(fn));
}

}  // namespace tensord::kernels::linalg
