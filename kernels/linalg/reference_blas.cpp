// Gives the reference LAPACK our own matrix products; the rest of its BLAS is in its archive.
#ifdef TENSORD_REFERENCE_LAPACK
#include <cstddef>

#include "kernels/gemm/gemm.h"

namespace tensord::kernels {
namespace {

template <class T>
void product_by_columns(char turn_a, char turn_b, const int (&sizes)[3], T alpha, const T* a, int lda, const T* b,
                        int ldb, T beta, T* c, int ldc) {
  const auto matrix = [](const T* data, int rows, int columns, int ld, bool is_turned) {
    return Matrix{const_cast<T*>(data), rows, columns, is_turned ? ld : 1, is_turned ? 1 : ld};
  };
  const auto is_turned = [](char letter) { return letter != 'N' && letter != 'n'; };
  const auto [m, n, k] = sizes;
  if (m == 0 || n == 0) return;
  gemm(dtype_of<T>, alpha, matrix(a, m, k, lda, is_turned(turn_a)), matrix(b, k, n, ldb, is_turned(turn_b)), beta,
       matrix(c, m, n, ldc, false));
}

}  // namespace
}  // namespace tensord::kernels

#define TENSORD_GEMM(T, NAME)                                                                                          \
  extern "C" void NAME(const char* turn_a, const char* turn_b, const int* m, const int* n, const int* k,               \
                       const T* alpha, const T* a, const int* lda, const T* b, const int* ldb, const T* beta, T* c,    \
                       const int* ldc, size_t, size_t) {                                                               \
    tensord::kernels::product_by_columns<T>(*turn_a, *turn_b, {*m, *n, *k}, *alpha, a, *lda, b, *ldb, *beta, c, *ldc); \
  }
TENSORD_GEMM(float, sgemm_)
TENSORD_GEMM(double, dgemm_)
#endif
