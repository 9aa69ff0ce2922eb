#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

// Sums that special functions are made of. Everything in this folder computes in the type it is called with and keeps
// PyTorch's order of operations, so that results agree with PyTorch's where both are off. Functions of this
// folder are called for one element at a time and are not forced inline: vector code gains nothing here.
#if defined(__CUDACC__)
#define TENSORD_SPECIAL __host__ __device__ inline
#else
#define TENSORD_SPECIAL inline
#endif

namespace tensord::kernels::special {

template <class T>
inline constexpr T kInf = std::numeric_limits<T>::infinity();
template <class T>
inline constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
template <class T>
inline constexpr T kPi = static_cast<T>(3.14159265358979323846);

// A polynomial by Horner's rule, the highest power first.
template <class T, size_t kCount>
TENSORD_SPECIAL T polynomial(T x, const T (&coefficients)[kCount]) {
  T sum = 0;
  for (size_t i = 0; i < kCount; ++i) sum = sum * x + coefficients[i];
  return sum;
}

// A series of Chebyshev polynomials of x / 2 by Clenshaw's rule, the highest order first; the last coefficient counts
// half.
template <class T, size_t kCount>
TENSORD_SPECIAL T chebyshev_series(T x, const T (&coefficients)[kCount]) {
  T b0 = coefficients[0], b1 = 0, b2 = 0;
  for (size_t i = 1; i < kCount; ++i) {
    b2 = b1;
    b1 = b0;
    b0 = x * b1 - b2 + coefficients[i];
  }
  return static_cast<T>(0.5) * (b0 - b2);
}

}  // namespace tensord::kernels::special
