#include "kernels/linalg/lapack.h"

#include "kernels/linalg/lapack_complex.h"

#include <algorithm>
#include <cmath>

// LAPACK's own handler prints and goes on. The error also comes back as a negative code, which is what callers check.
extern "C" void xerbla_(const char*, const int*, size_t) {}

#ifdef TENSORD_REFERENCE_LAPACK
// All that LAPACK's archives need of Fortran's runtime: a // b, cut or padded with blanks to `size`.
extern "C" void _gfortran_concat_string(size_t size, char* to, size_t first_size, const char* first, size_t second_size,
                                        const char* second) {
  const size_t taken = std::min(size, first_size), rest = std::min(size - taken, second_size);
  std::copy_n(first, taken, to);
  std::copy_n(second, rest, to + taken);
  std::fill_n(to + taken + rest, size - taken - rest, ' ');
}
#endif

namespace tensord::kernels::linalg {

void check_lapack_sizes(std::string_view op, int64_t rows, int64_t columns) {
  constexpr int64_t kMaxLarge = int64_t{1} << 24, kMaxSmall = 16000;
  check(rows <= kMaxLarge && columns <= kMaxLarge && std::min(rows, columns) <= kMaxSmall, op, ": matrices of ", rows,
        " by ", columns, " are too large");
}

bool is_finite(const Tensor& x, const Dims& batch, int64_t index) {
  const Matrix m = matrix_at(x, batch, index);
  return dispatch_lapack(x.dtype(), "linalg", [&]<class T>() {
    const T* values = static_cast<const T*>(m.data);
    for (int64_t c = 0; c < m.cols; ++c) {
      for (int64_t r = 0; r < m.rows; ++r) {
        const T value = values[r * m.row_stride + c * m.col_stride];
        if constexpr (is_complex_type<T>) {
          if (!std::isfinite(value.real()) || !std::isfinite(value.imag())) return false;
        } else if (!std::isfinite(value)) {
          return false;
        }
      }
    }
    return true;
  });
}

}  // namespace tensord::kernels::linalg
