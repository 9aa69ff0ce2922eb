#pragma once

#include "kernels/base/series.h"

namespace tensord::kernels::special {

// Terms of the Hurwitz zeta function up to a = q + k beyond 9, then Euler and Maclaurin's series with 12 Bernoulli
// numbers; as in S. Moshier's Cephes library. q is at least -1024.
TENSORD_SPECIAL double zeta_sum(double s, double q) {
  // (2 j)! / B(2 j)
  static constexpr double kFactors[] = {12.0,
                                        -720.0,
                                        30240.0,
                                        -1209600.0,
                                        47900160.0,
                                        -1307674368000.0 / 691,
                                        74724249600.0,
                                        -10670622842880000.0 / 3617,
                                        5109094217170944000.0 / 43867,
                                        -802857662698291200000.0 / 174611,
                                        155112100433309859840000.0 / 854513,
                                        -1693824136731743669452800000.0 / 236364091};
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon() / 2;
  double sum = std::pow(q, -s), a = q, term = 0;
  for (int i = 0; i < 9 || a <= 9; ++i) {
    a += 1;
    term = std::pow(a, -s);
    sum += term;
    if (-kEpsilon * sum < term && term < kEpsilon * sum) return sum;
  }
  sum += term * a / (s - 1) - 0.5 * term;
  double rising = 1;
  for (int j = 0; j < 12; ++j) {
    rising *= s + 2 * j;
    term /= a;
    const double part = rising * term / kFactors[j];
    sum += part;
    if (std::abs(part / sum) < kEpsilon) return sum;
    rising *= s + 2 * j + 1;
    term /= a;
  }
  return sum;
}

// The sum of (q + k)^-s over k >= 0. Far below zero the negative terms are the difference of two such sums.
TENSORD_SPECIAL double zeta(double s, double q) {
  if (s == 1) return kInf<double>;
  if (s < 1) return kNan<double>;
  if (q <= 0) {
    if (q == std::floor(q)) return kInf<double>;
    if (s != std::floor(s)) return kNan<double>;
  }
  if (!(q < -1024)) return zeta_sum(s, q);
  if (s == kInf<double>) return s;
  const double fraction = q - std::floor(q), negative = zeta_sum(s, 1 - fraction) - zeta_sum(s, 1 - q);
  return zeta_sum(s, fraction) + (std::fmod(s, 2) == 0 ? negative : -negative);
}
TENSORD_SPECIAL float zeta(float s, float q) {
  return static_cast<float>(zeta(static_cast<double>(s), static_cast<double>(q)));
}

// The sum of (x + k)^-2, in the steps of PyTorch: 6 terms and the asymptotic series, or the reflection below one half,
// where the sine's rounding decides at whole numbers.
template <class T>
TENSORD_SPECIAL T trigamma(T x) {
  T sum = 0;
  const bool is_reflected = x < T(0.5);
  if (is_reflected) {
    const T sine = std::sin(kPi<T> * x);
    sum -= kPi<T> * kPi<T> / (sine * sine);
    x = T(1) - x;
  }
  for (int i = 0; i < 6; ++i, x += T(1)) sum += T(1) / (x * x);
  const T z = T(1) / (x * x);
  const T series = z * (T(1) / T(6) - z * (T(1) / T(30) - z * (T(1) / T(42))));
  sum += (T(1) + T(1) / (T(2) * x) + series) / x;
  return is_reflected ? -sum : sum;
}

}  // namespace tensord::kernels::special
