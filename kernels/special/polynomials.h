#pragma once

#include "kernels/base/series.h"

// Orthogonal polynomials of degree n, a whole number in the type of x: recurrences forward, and sines and cosines for
// Chebyshev's where PyTorch takes them. Products are fused where PyTorch's are, which single precision shows. Degrees
// below zero, infinite or not a number give 0, as in PyTorch.
namespace tensord::kernels::special {

// More steps of a recurrence than this would keep a thread busy with one element; the result is NaN.
inline constexpr int64_t kMaxSteps = 65536;

// The degree as PyTorch's conversion to int64 gives it.
template <class T>
TENSORD_SPECIAL int64_t degree_of(T n) {
  return n > T(-9.2e18) && n < T(9.2e18) ? static_cast<int64_t>(n) : -1;
}

// y(k) = factor y(k - 1) - y(k - 2) from y(0) = 1 and y(1), up to y(n).
template <class T>
TENSORD_SPECIAL T chebyshev_steps(T factor, T first, int64_t n) {
  if (n == 0) return T(1);
  if (n > kMaxSteps) return kNan<T>;
  T before = 1, y = first;
  for (int64_t k = 2; k <= n && y == y; ++k) {
    const T next = std::fma(factor, y, -before);
    before = y;
    y = next;
  }
  return y;
}
TENSORD_SPECIAL bool is_even(int64_t n) { return n % 2 == 0; }

// Chebyshev's polynomials of the four kinds at x for a degree of 0 or more. Kinds differ in the first polynomial and in
// the values at 1 and -1; from `from` on, values within (-1, 1) are quotients of sines and cosines of the angle
// acos(x).
template <class T>
TENSORD_SPECIAL T chebyshev_t_at(T x, int64_t n) {
  if (std::abs(x) == T(1)) return x > T(0) || is_even(n) ? T(1) : T(-1);
  if (n > 6 && std::abs(x) < T(1)) return std::cos(static_cast<T>(n) * std::acos(x));
  return chebyshev_steps(x + x, x, n);
}
template <class T>
TENSORD_SPECIAL T chebyshev_u_at(T x, int64_t n, int64_t from) {
  const T end = static_cast<T>(n + 1);
  if (std::abs(x) == T(1)) return x > T(0) || is_even(n) ? end : -end;
  if (n > from && std::abs(x) < T(1)) {
    const T angle = std::acos(x), sine = std::sin(angle);
    return sine != T(0) ? std::sin(end * angle) / sine : end * std::cos(end * angle) / x;
  }
  return chebyshev_steps(x + x, x + x, n);
}
template <class T>
TENSORD_SPECIAL T chebyshev_v_at(T x, int64_t n, int64_t from) {
  const T end = static_cast<T>(n + n + 1);
  if (std::abs(x) == T(1)) return x > T(0) ? T(1) : is_even(n) ? end : -end;
  if (n > from && std::abs(x) < T(1)) {
    const T angle = std::acos(x);
    if (std::sin(angle / T(2)) == T(1)) return is_even(n) ? end : -end;
    return std::cos((static_cast<T>(n) + T(0.5)) * angle) / std::cos(angle / T(2));
  }
  return chebyshev_steps(x + x, x + x - T(1), n);
}
template <class T>
TENSORD_SPECIAL T chebyshev_w_at(T x, int64_t n, int64_t from) {
  const T end = static_cast<T>(n + n + 1);
  if (std::abs(x) == T(1)) return x > T(0) ? end : is_even(n) ? T(1) : T(-1);
  if (n > from && std::abs(x) < T(1)) {
    const T angle = std::acos(x);
    if (std::cos(angle / T(2)) == T(1)) return x > T(0) ? end : is_even(n) ? T(1) : T(-1);
    return std::sin((static_cast<T>(n) + T(0.5)) * angle) / std::sin(angle / T(2));
  }
  return chebyshev_steps(x + x, x + x + T(1), n);
}

template <class T>
TENSORD_SPECIAL T chebyshev_t(T x, T n) {
  const int64_t degree = degree_of(n);
  return degree < 0 ? T(0) : chebyshev_t_at(x, degree);
}
template <class T>
TENSORD_SPECIAL T chebyshev_u(T x, T n) {
  const int64_t degree = degree_of(n);
  return degree < 0 ? T(0) : chebyshev_u_at(x, degree, 8);
}
template <class T>
TENSORD_SPECIAL T chebyshev_v(T x, T n) {
  const int64_t degree = degree_of(n);
  return degree < 0 ? T(0) : chebyshev_v_at(x, degree, 8);
}
template <class T>
TENSORD_SPECIAL T chebyshev_w(T x, T n) {
  const int64_t degree = degree_of(n);
  return degree < 0 ? T(0) : chebyshev_w_at(x, degree, 8);
}
// The shifted ones are taken at 2 x - 1.
template <class T>
TENSORD_SPECIAL T shifted_chebyshev_t(T x, T n) {
  return chebyshev_t(x + x - T(1), n);
}
template <class T>
TENSORD_SPECIAL T shifted_chebyshev_u(T x, T n) {
  const int64_t degree = degree_of(n);
  return degree < 0 ? T(0) : chebyshev_u_at(x + x - T(1), degree, 6);
}
template <class T>
TENSORD_SPECIAL T shifted_chebyshev_v(T x, T n) {
  const int64_t degree = degree_of(n);
  return degree < 0 ? T(0) : chebyshev_v_at(x + x - T(1), degree, 6);
}
template <class T>
TENSORD_SPECIAL T shifted_chebyshev_w(T x, T n) {
  const int64_t degree = degree_of(n);
  return degree < 0 ? T(0) : chebyshev_w_at(x + x - T(1), degree, 4);
}

template <class T>
TENSORD_SPECIAL T hermite_h(T x, T n) {
  const int64_t degree = degree_of(n);
  if (degree <= 0) return degree < 0 ? T(0) : T(1);
  if (degree > kMaxSteps) return kNan<T>;
  T before = 1, y = x + x;
  for (int64_t k = 1; k < degree; ++k) {
    const T next = std::fma(x + x, y, -(static_cast<T>(2 * k) * before));
    before = y;
    y = next;
  }
  return y;
}
template <class T>
TENSORD_SPECIAL T hermite_he(T x, T n) {
  const int64_t degree = degree_of(n);
  if (degree <= 0) return degree < 0 ? T(0) : T(1);
  if (degree > kMaxSteps) return kNan<T>;
  T before = 1, y = x;
  for (int64_t k = 1; k < degree; ++k) {
    const T next = std::fma(x, y, -(static_cast<T>(k) * before));
    before = y;
    y = next;
  }
  return y;
}
template <class T>
TENSORD_SPECIAL T laguerre_l(T x, T n) {
  const int64_t degree = degree_of(n);
  if (degree < 0) return T(0);
  if (x == T(0) || degree == 0) return T(1);
  if (degree > kMaxSteps) return kNan<T>;
  T before = 1, y = T(1) - x;
  for (int64_t k = 1; k < degree; ++k) {
    const T sum = std::fma(static_cast<T>(k + k) + (T(1) - x), y, -(static_cast<T>(k) * before));
    const T next = sum / static_cast<T>(k + 1);
    before = y;
    y = next;
  }
  return y;
}
template <class T>
TENSORD_SPECIAL T legendre_p(T x, T n) {
  const int64_t degree = degree_of(n);
  if (degree < 0) return T(0);
  if (std::abs(x) == T(1)) return x > T(0) || is_even(degree) ? T(1) : T(-1);
  if (degree == 0) return T(1);
  if (degree > kMaxSteps) return kNan<T>;
  T before = 1, y = x;
  for (int64_t k = 1; k < degree; ++k) {
    const T next = std::fma(static_cast<T>(k + k + 1) * x, y, -(static_cast<T>(k) * before)) / static_cast<T>(k + 1);
    before = y;
    y = next;
  }
  return y;
}

}  // namespace tensord::kernels::special
