#pragma once

#include "kernels/base/series.h"

// Bessel functions J and Y of orders 0 and 1, the spherical one of order 0, sinc, and Airy's function Ai: the
// approximations of S. Moshier's Cephes library, with its intervals and coefficients as PyTorch has them. Up to 9e-7
// from the exact values beside the borders of intervals, and so is PyTorch.
namespace tensord::kernels::special {

// What J and Y have in common beyond 5: p cos(t) - q sin(t) and p sin(t) + q cos(t), scaled by sqrt(2 / (pi x)).
template <class T>
struct BesselWave {
  T p, q, angle, x;
  TENSORD_SPECIAL T scaled(T value) const { return value * T(0.797884560802865355879892119868763737) / std::sqrt(x); }
  TENSORD_SPECIAL T first_kind() const { return scaled(p * std::cos(angle) - T(5) / x * q * std::sin(angle)); }
  TENSORD_SPECIAL T second_kind() const { return scaled(p * std::sin(angle) + T(5) / x * q * std::cos(angle)); }
};

template <class T>
TENSORD_SPECIAL BesselWave<T> bessel_wave_0(T x) {
  static constexpr T kPP[] = {7.96936729297347051624e-04, 8.28352392107440799803e-02, 1.23953371646414299388e+00,
                              5.44725003058768775090e+00, 8.74716500199817011941e+00, 5.30324038235394892183e+00,
                              9.99999999999999997821e-01};
  static constexpr T kPQ[] = {9.24408810558863637013e-04, 8.56288474354474431428e-02, 1.25352743901058953537e+00,
                              5.47097740330417105182e+00, 8.76190883237069594232e+00, 5.30605288235394617618e+00,
                              1.00000000000000000218e+00};
  static constexpr T kQP[] = {-1.13663838898469149931e-02, -1.28252718670509318512e+00, -1.95539544257735972385e+01,
                              -9.32060152123768231369e+01, -1.77681167980488050595e+02, -1.47077505154951170175e+02,
                              -5.14105326766599330220e+01, -6.05014350600728481186e+00};
  static constexpr T kQQ[] = {6.43178256118178023184e+01, 8.56430025976980587198e+02, 3.88240183605401609683e+03,
                              7.24046774195652478189e+03, 5.93072701187316984827e+03, 2.06209331660327847417e+03,
                              2.42005740240291393179e+02};
  const T z = T(25) / (x * x);
  return {polynomial(z, kPP) / polynomial(z, kPQ), polynomial(z, kQP) / polynomial(z, kQQ),
          x - T(0.785398163397448309615660845819875721), x};
}
template <class T>
TENSORD_SPECIAL BesselWave<T> bessel_wave_1(T x) {
  static constexpr T kPP[] = {7.62125616208173112003e-04, 7.31397056940917570436e-02, 1.12719608129684925192e+00,
                              5.11207951146807644818e+00, 8.42404590141772420927e+00, 5.21451598682361504063e+00,
                              1.00000000000000000254e+00};
  static constexpr T kPQ[] = {5.71323128072548699714e-04, 6.88455908754495404082e-02, 1.10514232634061696926e+00,
                              5.07386386128601488557e+00, 8.39985554327604159757e+00, 5.20982848682361821619e+00,
                              9.99999999999999997461e-01};
  static constexpr T kQP[] = {5.10862594750176621635e-02, 4.98213872951233449420e+00, 7.58238284132545283818e+01,
                              3.66779609360150777800e+02, 7.10856304998926107277e+02, 5.97489612400613639965e+02,
                              2.11688757100572135698e+02, 2.52070205858023719784e+01};
  static constexpr T kQQ[] = {7.42373277035675149943e+01, 1.05644886038262816351e+03, 4.98641058337653607651e+03,
                              9.56231892404756170795e+03, 7.99704160447350683650e+03, 2.82619278517639096600e+03,
                              3.36093607810698293419e+02};
  const T z = T(5) / x * (T(5) / x);
  return {polynomial(z, kPP) / polynomial(z, kPQ), polynomial(z, kQP) / polynomial(z, kQQ),
          x - T(2.356194490192344928846982537459627163), x};
}

template <class T>
TENSORD_SPECIAL T bessel_j0(T x) {
  static constexpr T kRP[] = {-4.79443220978201773821e+09, 1.95617491946556577543e+12, -2.49248344360967716204e+14,
                              9.70862251047306323952e+15};
  static constexpr T kRQ[] = {4.99563147152651017219e+02, 1.73785401676374683123e+05, 4.84409658339962045305e+07,
                              1.11855537045356834862e+10, 2.11277520115489217587e+12, 3.10518229857422583814e+14,
                              3.18121955943204943306e+16, 1.71086294081043136091e+18};
  x = x < T(0) ? -x : x;
  const T z = x * x;
  if (x <= T(5)) {
    if (x < T(0.00001)) return T(1) - z / T(4);
    // The first two zeros are factors.
    return (z - T(5.78318596294678452118)) * (z - T(30.4712623436620863991)) * polynomial(z, kRP) / polynomial(z, kRQ);
  }
  return bessel_wave_0(x).first_kind();
}
template <class T>
TENSORD_SPECIAL T bessel_j1(T x) {
  static constexpr T kRP[] = {-8.99971225705559398224e+08, 4.52228297998194034323e+11, -7.27494245221818276015e+13,
                              3.68295732863852883286e+15};
  static constexpr T kRQ[] = {6.20836478118054335476e+02, 2.56987256757748830383e+05, 8.35146791431949253037e+07,
                              2.21511595479792499675e+10, 4.74914122079991414898e+12, 7.84369607876235854894e+14,
                              8.95222336184627338078e+16, 5.32278620332680085395e+18};
  const T a = x < T(0) ? -x : x, z = a * a;
  const T result = a <= T(5) ? polynomial(z, kRP) / polynomial(z, kRQ) * a * (z - T(14.6819706421238932572)) *
                                   (z - T(49.2184563216946036703))
                             : bessel_wave_1(a).first_kind();
  return x < T(0) ? -result : result;
}

template <class T>
TENSORD_SPECIAL T bessel_y0(T x) {
  static constexpr T kYP[] = {1.55924367855235737965e+04,  -1.46639295903971606143e+07, 5.43526477051876500413e+09,
                              -9.82136065717911466409e+11, 8.75906394395366999549e+13,  -3.46628303384729719441e+15,
                              4.42733268572569800351e+16,  -1.84950800436986690637e+16};
  static constexpr T kYQ[] = {1.04128353664259848412e+03, 6.26107330137134956842e+05, 2.68919633393814121987e+08,
                              8.64002487103935000337e+10, 2.02979612750105546709e+13, 3.17157752842975028269e+15,
                              2.50596256172653059228e+17};
  if (x == T(0)) return -kInf<T>;
  if (x < T(0)) return kNan<T>;
  if (x <= T(5)) {
    const T z = x * x;
    return polynomial(z, kYP) / polynomial(z, kYQ) +
           T(0.636619772367581343075535053490057448) * std::log(x) * bessel_j0(x);
  }
  return bessel_wave_0(x).second_kind();
}
template <class T>
TENSORD_SPECIAL T bessel_y1(T x) {
  static constexpr T kYP[] = {1.26320474790178026440e+09,  -6.47355876379160291031e+11, 1.14509511541823727583e+14,
                              -8.12770255501325109621e+15, 2.02439475713594898196e+17,  -7.78877196265950026825e+17};
  static constexpr T kYQ[] = {5.94301592346128195359e+02, 2.35564092943068577943e+05, 7.34811944459721705660e+07,
                              1.87601316108706159478e+10, 3.88231277496238566008e+12, 6.20557727146953693363e+14,
                              6.87141087355300489866e+16, 3.97270608116560655612e+18};
  if (x == T(0)) return -kInf<T>;
  if (x < T(0)) return kNan<T>;
  if (x <= T(5)) {
    const T z = x * x;
    return x * (polynomial(z, kYP) / polynomial(z, kYQ)) +
           T(0.636619772367581343075535053490057448) * (bessel_j1(x) * std::log(x) - T(1) / x);
  }
  return bessel_wave_1(x).second_kind();
}

// sin(x) / x, below 0.5 by its Taylor series.
template <class T>
TENSORD_SPECIAL T spherical_bessel_j0(T x) {
  static constexpr T kTaylor[] = {static_cast<T>(1.0 / 6227020800.0),
                                  static_cast<T>(-1.0 / 39916800.0),
                                  static_cast<T>(1.0 / 362880.0),
                                  static_cast<T>(-1.0 / 5040.0),
                                  static_cast<T>(1.0 / 120.0),
                                  static_cast<T>(-1.0 / 6.0),
                                  T(1)};
  if (std::abs(x) == kInf<T>) return T(0);
  return std::abs(x) < T(0.5) ? polynomial(x * x, kTaylor) : std::sin(x) / x;
}

// sin(pi x) / (pi x)
template <class T>
TENSORD_SPECIAL T sinc(T x) {
  const T angle = kPi<T> * x;
  return x == T(0) ? T(1) : std::sin(angle) / angle;
}

// Ai below -2.09: a wave whose amplitude and phase are rational in 1 / zeta.
template <class T>
TENSORD_SPECIAL T airy_ai_wave(T x) {
  static constexpr T kFN[] = {-1.31696323418331795333e-01, -6.26456544431912369773e-01, -6.93158036036933542233e-01,
                              -2.79779981545119124951e-01, -4.91900132609500318020e-02, -4.06265923594885404393e-03,
                              -1.59276496239262096340e-04, -2.77649108155232920844e-06, -1.67787698489114633780e-08};
  static constexpr T kFD[] = {1.33560420706553243746e+01, 3.26825032795224613948e+01, 2.67367040941499554804e+01,
                              9.18707402907259625840e+00, 1.47529146771666414581e+00, 1.15687173795188044134e-01,
                              4.40291641615211203805e-03, 7.54720348287414296618e-05, 4.51850092970580378464e-07};
  static constexpr T kGN[] = {1.97339932091685679179e-02, 3.91103029615688277255e-01, 1.06579897599595591108e+00,
                              9.39169229816650230044e-01, 3.51465656105547619242e-01, 6.33888919628925490927e-02,
                              5.85804113048388458567e-03, 2.82851600836737019778e-04, 6.98793669997260967291e-06,
                              8.11789239554389293311e-08, 3.41551784765923618484e-10};
  static constexpr T kGD[] = {9.30892908077441974853e+00, 1.98352928718312140417e+01, 1.55646628932864612953e+01,
                              5.47686069422975497931e+00, 9.54293611618961883998e-01, 8.64580826352392193095e-02,
                              4.12656523824222607191e-03, 1.01259085116509135510e-04, 1.17166733214413521882e-06,
                              4.91834570062930015649e-09};
  const T zeta = T(-2) * x * std::sqrt(-x) / T(3), z = T(1) / zeta, z2 = z * z;
  const T t = zeta + T(0.25) * kPi<T>;
  return T(0.564189583547756286948) / std::sqrt(std::sqrt(-x)) *
         (std::sin(t) * (T(1) + z2 * polynomial(z2, kFN) / polynomial(z2, kFD)) -
          std::cos(t) * (z * polynomial(z2, kGN) / polynomial(z2, kGD)));
}
// Above 2.09: exp(-zeta) times a function of 1 / zeta.
template <class T>
TENSORD_SPECIAL T airy_ai_decay(T x) {
  static constexpr T kN[] = {3.46538101525629032477e-01, 1.20075952739645805542e+01, 7.62796053615234516538e+01,
                             1.68089224934630576269e+02, 1.59756391350164413639e+02, 7.05360906840444183113e+01,
                             1.40264691163389668864e+01, 9.99999999999999995305e-01};
  static constexpr T kD[] = {5.67594532638770212846e-01, 1.47562562584847203173e+01, 8.45138970141474626562e+01,
                             1.77318088145400459522e+02, 1.64234692871529701831e+02, 7.14778400825575695274e+01,
                             1.40959135607834029598e+01, 1.00000000000000000470e+00};
  const T zeta = T(2) * x * std::sqrt(x) / T(3), z = T(1) / zeta;
  return T(0.564189583547756286948) * (polynomial(z, kN) / polynomial(z, kD)) /
         (T(2) * std::sqrt(std::sqrt(x)) * std::exp(zeta));
}
// Between: the two power series of y'' = x y.
template <class T>
TENSORD_SPECIAL T airy_ai(T x) {
  if (std::abs(x) == kInf<T> || x != x) return kNan<T>;
  if (x > T(103.892)) return T(0);
  if (x < T(-2.09)) return airy_ai_wave(x);
  if (x >= T(2.09)) return airy_ai_decay(x);
  const T z = x * x * x;
  T f = 1, g = x, k = 1, even = 1, odd = x;
  for (T change = 1; change > std::numeric_limits<T>::epsilon(); change = std::abs(even / f)) {
    even = even * z / (k + 1);
    odd = odd * z / (k + 2);
    even /= k + 2;
    f += even;
    odd /= k + 3;
    g += odd;
    k += 3;
  }
  return T(0.355028053887817239260) * f - T(0.258819403792806798405) * g;
}

}  // namespace tensord::kernels::special
