#pragma once

#include "kernels/base/math.h"
#include "kernels/base/zeta.h"

// The functions of math.def around the logarithm of gamma. All compute in double.
namespace tensord::kernels::formula {

// Recurrence up to 10, then the asymptotic series (Abramowitz and Stegun 6.3.18); reflection
// for negative arguments.
template <class T>
TENSORD_INLINE T digamma(T value) {
  constexpr double kPi = 3.14159265358979323846;
  double x = static_cast<double>(value), result = 0;
  if (x == 0) return copysign(kInfinity<T>, -value);
  if (x < 0) {
    if (x == ::floor(x)) return kNaN<T>;
    result = -kPi / ::tan(kPi * (x - ::trunc(x)));  // the whole part would cost digits
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  const double z = 1 / (x * x);
  const double series =
      z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760))))));
  return static_cast<T>(result + ::log(x) - 0.5 / x - series);
}

// The n-th derivative of digamma.
template <class T>
TENSORD_INLINE T polygamma(T value, T order) {
  const double x = static_cast<double>(value), n = static_cast<double>(order);
  if (n == 0) return digamma(value);
  if (n == 1) return special::trigamma(value);
  const double sign = ::fmod(n, 2) == 0 ? -1 : 1;
  return static_cast<T>(sign * ::tgamma(n + 1) * special::zeta(n + 1, x));
}

}  // namespace tensord::kernels::formula
