#pragma once

#include "kernels/base/series.h"

// Functions around the normal distribution.
namespace tensord::kernels::special {

// Where the normal distribution function reaches y: rational approximations of S. Moshier's Cephes library, around
// one half, and in sqrt(-2 log y) for the tails.
template <class T>
TENSORD_SPECIAL T ndtri(T y) {
  static constexpr T kP0[] = {-5.99633501014107895267e1, 9.80010754185999661536e1, -5.66762857469070293439e1,
                              1.39312609387279679503e1, -1.23916583867381258016e0};
  static constexpr T kQ0[] = {1.00000000000000000000e0,  1.95448858338141759834e0,  4.67627912898881538453e0,
                              8.63602421390890590575e1,  -2.25462687854119370527e2, 2.00260212380060660359e2,
                              -8.20372256168333339912e1, 1.59056225126211695515e1,  -1.18331621121330003142e0};
  static constexpr T kP1[] = {4.05544892305962419923e0,   3.15251094599893866154e1,   5.71628192246421288162e1,
                              4.40805073893200834700e1,   1.46849561928858024014e1,   2.18663306850790267539e0,
                              -1.40256079171354495875e-1, -3.50424626827848203418e-2, -8.57456785154685413611e-4};
  static constexpr T kQ1[] = {1.00000000000000000000e0,   1.57799883256466749731e1,   4.53907635128879210584e1,
                              4.13172038254672030440e1,   1.50425385692907503408e1,   2.50464946208309415979e0,
                              -1.42182922854787788574e-1, -3.80806407691578277194e-2, -9.33259480895457427372e-4};
  static constexpr T kP2[] = {3.23774891776946035970e0,  6.91522889068984211695e0,  3.93881025292474443415e0,
                              1.33303460815807542389e0,  2.01485389549179081538e-1, 1.23716634817820021358e-2,
                              3.01581553508235416007e-4, 2.65806974686737550832e-6, 6.23974539184983293730e-9};
  static constexpr T kQ2[] = {1.00000000000000000000e0,  6.02427039364742014255e0,  3.67983563856160859403e0,
                              1.37702099489081330271e0,  2.16236993594496635890e-1, 1.34204006088543189037e-2,
                              3.28014464682127739104e-4, 2.89247864745380683936e-6, 6.79019408009981274425e-9};
  constexpr T kTail = static_cast<T>(0.13533528323661269189);  // exp(-2)
  if (y == T(0)) return -kInf<T>;
  if (y == T(1)) return kInf<T>;
  if (!(y > T(0) && y < T(1))) return kNan<T>;
  const bool is_upper = y > T(1) - kTail;
  if (is_upper) y = T(1) - y;
  if (y > kTail) {
    const T d = y - T(0.5), z = d * d;
    return (d + d * (z * polynomial(z, kP0) / polynomial(z, kQ0))) * T(2.50662827463100050242);
  }
  const T x = std::sqrt(T(-2) * std::log(y)), z = T(1) / x;
  const T tail = x < T(8) ? z * polynomial(z, kP1) / polynomial(z, kQ1) : z * polynomial(z, kP2) / polynomial(z, kQ2);
  const T distance = x - std::log(x) / x - tail;
  return is_upper ? distance : -distance;
}

// exp(x * x) erfc(x) for x >= 0. Up to 20 the two factors are in range, and what x * x loses by rounding is made up
// for; beyond, the continued fraction (Abramowitz and Stegun 7.1.14).
TENSORD_SPECIAL double erfcx_positive(double x) {
  if (x <= 20) {
    const double square = x * x, lost = std::fma(x, x, -square);
    return std::exp(square) * (std::erfc(x) * (1 + lost));
  }
  if (x == kInf<double>) return 0;
  double fraction = x;
  for (int i = 12; i > 0; --i) fraction = x + 0.5 * i / fraction;
  return 0.56418958354775628695 / fraction;
}
template <class T>
TENSORD_SPECIAL T erfcx(T x) {
  if (x < T(-26.7)) return kInf<T>;
  const auto positive = static_cast<T>(erfcx_positive(static_cast<double>(std::abs(x))));
  return x < T(0) ? T(2) * std::exp(x * x) - positive : positive;
}

// The logarithm of the normal distribution function.
TENSORD_SPECIAL double log_ndtr(double x) {
  const double t = x * 0.70710678118654752440;
  return x < -1 ? std::log(erfcx(-t) / 2) - t * t : std::log1p(-std::erfc(t) / 2);
}
TENSORD_SPECIAL float log_ndtr(float x) { return static_cast<float>(log_ndtr(static_cast<double>(x))); }

}  // namespace tensord::kernels::special
