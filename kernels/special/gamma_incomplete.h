#pragma once

#include "kernels/special/gamma_temme.h"

// The regularized incomplete gamma functions P (lower) and Q (upper) of a and x: the division of the plane of SciPy's
// gammainc, which is Cephes' with Temme's expansion where x is near a large a, and Lanczos' sum as Boost has it.
namespace tensord::kernels::special {

template <class T>
struct GammaLimits {
  static constexpr T kEpsilon = std::numeric_limits<T>::epsilon() / 2;
  static constexpr T kBig = T(1) / std::numeric_limits<T>::epsilon();
  static constexpr T kLogMax =
      sizeof(T) == 8 ? static_cast<T>(709.782712893383996843) : static_cast<T>(88.72283905206835);
};
inline constexpr int kMaxTerms = 2000;

// Lanczos' sum for gamma(x), scaled by exp(g): a quotient of polynomials.
template <class T>
TENSORD_SPECIAL T lanczos_sum_scaled(T x) {
  static constexpr T kUp[] = {0.006061842346248906525783753964555936883222, 0.5098416655656676188125178644804694509993,
                              19.51992788247617482847860966235652136208,    449.9445569063168119446858607650988409623,
                              6955.999602515376140356310115515198987526,    75999.29304014542649875303443598909137092,
                              601859.6171681098786670226533699352302507,    3481712.15498064590882071018964774556468,
                              14605578.08768506808414169982791359218571,    43338889.32467613834773723740590533316085,
                              86363131.28813859145546927288977868422342,    103794043.1163445451906271053616070238554,
                              56906521.91347156388090791033559122686859};
  static constexpr T kDown[] = {1.,        66.,        1925.,      32670.,     357423.,   2637558., 13339535.,
                                45995730., 105258076., 150917976., 120543840., 39916800., 0.};
  if (std::abs(x) <= T(1)) return polynomial(x, kUp) / polynomial(x, kDown);
  T up = 0, down = 0;
  const T y = T(1) / x;  // whose powers cannot overflow
  for (int i = 12; i >= 0; --i) {
    up = up * y + kUp[i];
    down = down * y + kDown[i];
  }
  return up / down;
}

// x^a exp(-x) / gamma(a)
template <class T>
TENSORD_SPECIAL T gamma_factor(T a, T x) {
  constexpr T kG = static_cast<T>(6.024680040776729583740234375);
  if (std::abs(a - x) > T(0.4) * std::abs(a)) {
    const T logarithm = a * std::log(x) - x - std::lgamma(a);
    return logarithm < -GammaLimits<T>::kLogMax ? T(0) : std::exp(logarithm);
  }
  const T base = a + kG - T(0.5);
  const T scale = std::sqrt(base / static_cast<T>(2.718281828459045)) / lanczos_sum_scaled(a);
  if (a < T(200) && x < T(200)) return scale * (std::exp(a - x) * std::pow(x / base, a));
  const T part = (x - a - kG + T(0.5)) / base;
  return scale * std::exp(a * (std::log1p(part) - part) + x * (T(0.5) - kG) / base);
}

// P by its power series (DLMF 8.11.4).
template <class T>
TENSORD_SPECIAL T gamma_lower_series(T a, T x) {
  const T factor = gamma_factor(a, x);
  if (factor == T(0)) return T(0);
  T r = a, term = 1, sum = 1;
  for (int i = 0; i < kMaxTerms; ++i) {
    r += T(1);
    term *= x / r;
    sum += term;
    if (term <= GammaLimits<T>::kEpsilon * sum) break;
  }
  return sum * factor / a;
}
// Q by a series without cancellation for small x (DLMF 8.7.3).
template <class T>
TENSORD_SPECIAL T gamma_upper_series(T a, T x) {
  T power = 1, sum = 0;
  for (int n = 1; n < kMaxTerms; ++n) {
    power *= -x / static_cast<T>(n);
    const T term = power / (a + static_cast<T>(n));
    sum += term;
    if (std::abs(term) <= GammaLimits<T>::kEpsilon * std::abs(sum)) break;
  }
  const T logarithm = std::log(x);
  return -std::expm1(a * logarithm - std::lgamma(T(1) + a)) - std::exp(a * logarithm - std::lgamma(a)) * sum;
}
// Q by its continued fraction (DLMF 8.9.2), numerators and denominators scaled down when they grow.
template <class T>
TENSORD_SPECIAL T gamma_upper_fraction(T a, T x) {
  const T factor = gamma_factor(a, x);
  if (factor == T(0)) return T(0);
  T y = T(1) - a, z = x + y + T(1), c = 0;
  T p2 = 1, q2 = x, p1 = x + T(1), q1 = z * x, value = p1 / q1;
  for (int i = 0; i < kMaxTerms; ++i) {
    c += T(1);
    y += T(1);
    z += T(2);
    const T p = p1 * z - p2 * (y * c), q = q1 * z - q2 * (y * c);
    T change = 1;
    if (q != T(0)) {
      change = std::abs((value - p / q) / (p / q));
      value = p / q;
    }
    const T scale = std::abs(p) > GammaLimits<T>::kBig ? T(1) / GammaLimits<T>::kBig : T(1);
    p2 = p1 * scale;
    q2 = q1 * scale;
    p1 = p * scale;
    q1 = q * scale;
    if (change <= GammaLimits<T>::kEpsilon) break;
  }
  return value * factor;
}

// Temme's uniform expansion for large a (DLMF 8.12.3 and 8.12.4): Q, or P where `lower`.
template <class T>
TENSORD_SPECIAL T gamma_temme(T a, T x, bool lower) {
  const T ratio = x / a, sigma = (x - a) / a, sign = lower ? T(-1) : T(1);
  const T distance = std::sqrt(T(-2) * (std::log1p(sigma) - sigma));
  const T eta = ratio > T(1) ? distance : ratio < T(1) ? -distance : T(0);
  T sum = 0, scale = 1, before = kInf<T>;
  for (int k = 0; k < kTemmeTerms; ++k) {
    T inner = temme_coefficient<T>(k, 0), power = 1;
    for (int n = 1; n < kTemmeTerms; ++n) {
      power *= eta;
      const T term = temme_coefficient<T>(k, n) * power;
      inner += term;
      if (std::abs(term) < GammaLimits<T>::kEpsilon * std::abs(inner)) break;
    }
    const T term = inner * scale;
    if (std::abs(term) > before) break;
    sum += term;
    if (std::abs(term) < GammaLimits<T>::kEpsilon * std::abs(sum)) break;
    before = std::abs(term);
    scale /= a;
  }
  return T(0.5) * std::erfc(sign * eta * std::sqrt(a / T(2))) +
         sign * std::exp(T(-0.5) * a * eta * eta) * sum / std::sqrt(T(2) * kPi<T> * a);
}
template <class T>
TENSORD_SPECIAL bool in_temme_region(T a, T x) {
  const T distance = std::abs(x - a) / a;
  return a > T(20) && a < T(200) ? distance < T(0.3) : a > T(200) && distance < T(4.5) / std::sqrt(a);
}

// Q at the borders of the plane, in PyTorch's order, in which some numbers win over NaN. False where there is none.
template <class T>
TENSORD_SPECIAL bool gamma_border(T a, T x, T* upper) {
  if (x < T(0) || a < T(0)) {
    *upper = kNan<T>;
  } else if (a == T(0)) {
    *upper = x > T(0) ? T(0) : kNan<T>;
  } else if (x == T(0)) {
    *upper = 1;
  } else if (a == kInf<T>) {
    *upper = x == kInf<T> ? kNan<T> : T(1);
  } else if (x == kInf<T>) {
    *upper = 0;
  } else if (a != a || x != x) {
    *upper = kNan<T>;
  } else {
    return false;
  }
  return true;
}

template <class T>
TENSORD_SPECIAL T igammac(T a, T x) {
  T border = 0;
  if (gamma_border(a, x, &border)) return border;
  if (in_temme_region(a, x)) return gamma_temme(a, x, false);
  if (x > T(1.1)) return x < a ? T(1) - gamma_lower_series(a, x) : gamma_upper_fraction(a, x);
  const bool lower = x <= T(0.5) ? T(-0.4) / std::log(x) < a : x * T(1.1) < a;
  return lower ? T(1) - gamma_lower_series(a, x) : gamma_upper_series(a, x);
}
template <class T>
TENSORD_SPECIAL T igamma(T a, T x) {
  T border = 0;
  if (gamma_border(a, x, &border)) return T(1) - border;
  if (in_temme_region(a, x)) return gamma_temme(a, x, true);
  return x > T(1) && x > a ? T(1) - igammac(a, x) : gamma_lower_series(a, x);
}

}  // namespace tensord::kernels::special
