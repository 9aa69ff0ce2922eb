#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/math.h"
#if defined(__CUDACC__) && !defined(TENSORD_CUDA_EMULATED)
#include <cuda/std/cmath>
#include <cuda/std/complex>
#else
#include <cmath>
#include <complex>
#endif

// The lines of formulas.def, for the loops of the processor and for CUDA's kernels.
namespace tensord::kernels {

enum class ComplexFormula : uint8_t {
#define FORMULA(NAME, RESULT, ...) NAME,
#include "kernels/complex/formulas.def"
#undef FORMULA
  kCount
};
inline constexpr size_t kComplexFormulas = static_cast<size_t>(ComplexFormula::kCount);

}  // namespace tensord::kernels

namespace tensord::kernels::complex_loops {

#if defined(__CUDACC__) && !defined(TENSORD_CUDA_EMULATED)
namespace cx = ::cuda::std;
#else
namespace cx = std;
#endif

template <class T>
using Real = typename T::value_type;

// Products and quotients without C's special cases for infinities, as in PyTorch.
template <class T>
TENSORD_INLINE T times(T a, T b) {
  return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
}
// Smith's quotient: intermediate results do not overflow.
template <class T>
TENSORD_INLINE T over(T a, T b) {
  using R = Real<T>;
  const R c = b.real(), d = b.imag();
  const R abs_c = cx::abs(c), abs_d = cx::abs(d);
  if (abs_c >= abs_d) {
    if (abs_c == R(0) && abs_d == R(0)) return T(a.real() / abs_c, a.imag() / abs_d);
    const R ratio = d / c, scale = R(1) / (c + d * ratio);
    return T((a.real() + a.imag() * ratio) * scale, (a.imag() - a.real() * ratio) * scale);
  }
  const R ratio = c / d, scale = R(1) / (c * ratio + d);
  return T((a.real() * ratio + a.imag()) * scale, (a.imag() * ratio - a.real()) * scale);
}
template <class T>
TENSORD_INLINE T power(T a, T b) {
  if (b == T(0)) return T(1);
  if (b == T(1)) return a;
  if (b == T(2)) return times(a, a);
  if (b == T(Real<T>(0.5))) return cx::sqrt(a);
  if (a == T(0)) return b.real() > 0 ? T(0) : cx::pow(a, b);
  return cx::pow(a, b);
}
template <class T>
TENSORD_INLINE bool is_close(T x, T y, Real<T> rtol, Real<T> atol, bool equal_nan) {
  if (x == y) return true;
  if (equal_nan && x != x && y != y) return true;
  const Real<T> allowed = atol + cx::abs(rtol * cx::abs(y)), actual = cx::abs(x - y);
  return cx::isfinite(actual) && actual <= allowed;
}

template <ComplexFormula kFormula>
struct FormulaOf;
#define FORMULA(NAME, RESULT, ...)                                                                   \
  template <>                                                                                        \
  struct FormulaOf<ComplexFormula::NAME> {                                                           \
    template <class T>                                                                               \
    static TENSORD_INLINE auto run([[maybe_unused]] T x, [[maybe_unused]] T y, [[maybe_unused]] T z, \
                                   [[maybe_unused]] const double* p) {                               \
      using R [[maybe_unused]] = Real<T>;                                                            \
      return static_cast<RESULT>(__VA_ARGS__);                                                       \
    }                                                                                                \
  };
#include "kernels/complex/formulas.def"
#undef FORMULA

}  // namespace tensord::kernels::complex_loops
