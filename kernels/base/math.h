#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/tensor/half.h"

// The functions that formulas of kernels/pointwise_*.def may call, for float, double and
// (where it makes sense) int64_t. In float they are free of branches and library calls
// wherever a loop over them should become vector code; every one is forced inline, so it
// is compiled with the instruction set of the loop that calls it. Polynomials are minimax
// fits (iteratively reweighted least squares at Chebyshev nodes) made for this file; the
// comment at each gives its range and error.
#if defined(__CUDACC__)
#define TENSORD_INLINE __host__ __device__ __forceinline__
#else
#define TENSORD_INLINE inline __attribute__((always_inline))
#endif

namespace tensord::kernels::formula {

template <class To, class From>
TENSORD_INLINE To bits_of(From value) {
  return __builtin_bit_cast(To, value);
}

template <class T>
inline constexpr T kInfinity = std::numeric_limits<T>::infinity();
template <class T>
inline constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();

// Library functions in both precisions.
#define TENSORD_LIBM1(NAME)                                  \
  TENSORD_INLINE double NAME(double x) { return ::NAME(x); } \
  TENSORD_INLINE float NAME##_libm(float x) { return ::NAME##f(x); }
#define TENSORD_LIBM1_BOTH(NAME) \
  TENSORD_LIBM1(NAME)            \
  TENSORD_INLINE float NAME(float x) { return ::NAME##f(x); }
#define TENSORD_LIBM2(NAME)                                               \
  TENSORD_INLINE double NAME(double x, double y) { return ::NAME(x, y); } \
  TENSORD_INLINE float NAME(float x, float y) { return ::NAME##f(x, y); }
TENSORD_LIBM1(exp)
TENSORD_LIBM1(expm1)
TENSORD_LIBM1(log)
TENSORD_LIBM1(log1p)
TENSORD_LIBM1(log2)
TENSORD_LIBM1(log10)
TENSORD_LIBM1(tanh)
TENSORD_LIBM1(erf)
TENSORD_LIBM1_BOTH(exp2)
TENSORD_LIBM1_BOTH(erfc)
TENSORD_LIBM1(sin)
TENSORD_LIBM1(cos)
TENSORD_LIBM1_BOTH(tan)
TENSORD_LIBM1_BOTH(asin)
TENSORD_LIBM1_BOTH(acos)
TENSORD_LIBM1_BOTH(atan)
TENSORD_LIBM1_BOTH(sinh)
TENSORD_LIBM1_BOTH(cosh)
TENSORD_LIBM1_BOTH(asinh)
TENSORD_LIBM1_BOTH(acosh)
TENSORD_LIBM1_BOTH(atanh)
TENSORD_LIBM1_BOTH(sqrt)
TENSORD_LIBM1_BOTH(floor)
TENSORD_LIBM1_BOTH(ceil)
TENSORD_LIBM1_BOTH(trunc)
TENSORD_LIBM1_BOTH(rint)
TENSORD_LIBM1_BOTH(lgamma)
TENSORD_LIBM2(pow)
TENSORD_LIBM2(fmod)
TENSORD_LIBM2(atan2)
TENSORD_LIBM2(hypot)
TENSORD_LIBM2(copysign)
#undef TENSORD_LIBM1
#undef TENSORD_LIBM1_BOTH
#undef TENSORD_LIBM2

template <class T>
TENSORD_INLINE T abs(T x) {
  if constexpr (std::is_same_v<T, float>) {
    return bits_of<float>(bits_of<uint32_t>(x) & 0x7fffffffu);
  } else if constexpr (std::is_same_v<T, double>) {
    return bits_of<double>(bits_of<uint64_t>(x) & 0x7fffffffffffffffull);
  } else {
    return x < 0 ? static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x)) : x;
  }
}
template <class T>
TENSORD_INLINE bool signbit(T x) {  // of -0 and negative NaNs too
  if constexpr (std::is_same_v<T, float>) {
    return bits_of<uint32_t>(x) >> 31;
  } else if constexpr (std::is_same_v<T, double>) {
    return bits_of<uint64_t>(x) >> 63;
  } else {
    return x < 0;
  }
}
template <class T>
TENSORD_INLINE bool isnan(T x) {
  return x != x;  // NOLINT(misc-redundant-expression)
}
template <class T>
TENSORD_INLINE bool isinf(T x) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return abs(x) == kInfinity<T>;
}
template <class T>
TENSORD_INLINE bool isfinite(T x) {
  if constexpr (std::is_integral_v<T>)
    return true;
  else
    return abs(x) < kInfinity<T>;
}

// NaN stays; the bounds are not NaN.
template <class T>
TENSORD_INLINE T clamp(T x, T low, T high) {
  const T raised = x < low ? low : x;
  return raised > high ? high : raised;
}

#if defined(__CUDACC__)
// The device's own library is accurate and fast.
TENSORD_INLINE float exp(float x) { return ::expf(x); }
TENSORD_INLINE float expm1(float x) { return ::expm1f(x); }
TENSORD_INLINE float log(float x) { return ::logf(x); }
TENSORD_INLINE float log1p(float x) { return ::log1pf(x); }
TENSORD_INLINE float log2(float x) { return ::log2f(x); }
TENSORD_INLINE float log10(float x) { return ::log10f(x); }
TENSORD_INLINE float tanh(float x) { return ::tanhf(x); }
TENSORD_INLINE float erf(float x) { return ::erff(x); }
TENSORD_INLINE float sin(float x) { return ::sinf(x); }
TENSORD_INLINE float cos(float x) { return ::cosf(x); }
#else
// From here on the two parts of pi that `sine` has do not have digits enough.
inline constexpr float kFarSine = 4194304.0f;  // 2^22
// x = n pi/2 + r in double, pi/2 in two parts, error 5e-10 to the bound, with fused multiply-add and without; then
// Taylor polynomials on |r| <= pi/4, error 2e-10. Beyond it the result is NaN: rows with such numbers are the
// library's. `shift` quarter turns are added: 0 gives the sine, 1 the cosine.
TENSORD_INLINE float sine(float value, double shift) {
  const double x = value < kFarSine && value > -kFarSine ? value : kNaN<double>;
  constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  const double n = (x * 0.63661977236758134308 + kMagic) - kMagic;
  const double r = (x - n * 1.5707963267948965580) - n * 6.1232339957367658861e-17;
  const double z = r * r;
  const double s = r + r * z *
                           (-1.6666666666666666e-01 +
                            z * (8.3333333333333333e-03 + z * (-1.9841269841269841e-04 + z * 2.7557319223985893e-06)));
  const double c =
      1.0 +
      z * (-0.5 + z * (4.1666666666666667e-02 +
                       z * (-1.3888888888888889e-03 + z * (2.4801587301587302e-05 + z * -2.7557319223985888e-07))));
  // The quarter turn modulo 4, as a double: 0 … 3.
  const double q = n + shift;
  const double turns = (q * 0.25 - 0.375 + kMagic) - kMagic;  // floor(q / 4), q being whole
  const double rest = q - 4.0 * turns;
  const double odd = rest >= 2.0 ? rest - 2.0 : rest;
  const double chosen = odd == 0.0 ? s : c;
  return static_cast<float>(rest >= 2.0 ? -chosen : chosen);
}
TENSORD_INLINE float sin(float x) { return sine(x, 0.0); }
TENSORD_INLINE float cos(float x) { return sine(x, 1.0); }
// x = n ln 2 + r, exp(x) = 2^n exp(r). The scale is applied in two steps so that results
// below the normal range round once and overflow gives infinity.
TENSORD_INLINE float exp(float x) {
  const float limited = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = limited * 1.44269504088896341f + kMagic;
  const float n = shifted - kMagic;
  const float r = (limited - n * 0.693359375f) - n * -2.12194440054690583e-4f;
  // |r| <= 0.3475, relative error 3.2e-9
  float p = 1.395080890e-03f;
  p = p * r + 8.369072861e-03f;
  p = p * r + 4.166620104e-02f;
  p = p * r + 1.666651731e-01f;
  p = p * r + 5.000000097e-01f;
  const float e = p * (r * r) + r + 1.0f;
  const int32_t exponent = bits_of<int32_t>(shifted) - bits_of<int32_t>(kMagic);
  const int32_t half = exponent >> 1;
  const float scale1 = bits_of<float>((half + 127) << 23);
  const float scale2 = bits_of<float>((exponent - half + 127) << 23);
  return e * scale1 * scale2;
}

TENSORD_INLINE float expm1(float x) {
  // |x| <= 0.5, relative error 1e-10
  float p = 2.497025950e-05f;
  p = p * x + 1.997401971e-04f;
  p = p * x + 1.388854342e-03f;
  p = p * x + 8.333140750e-03f;
  p = p * x + 4.166666927e-02f;
  p = p * x + 1.666666746e-01f;
  p = p * x + 5.000000000e-01f;
  const float near = p * (x * x) + x;
  const float far = exp(x) - 1.0f;
  return abs(x) < 0.5f ? near : far;
}

// x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)): fills e and log(1 + f) for positive,
// finite x.
TENSORD_INLINE float log_parts(float x, float* e) {
  const bool tiny = x < 1.17549435e-38f;
  const float scaled = tiny ? x * 8388608.0f : x;
  // Unsigned, as the difference may wrap for a negative x, whose result log_edges replaces.
  const uint32_t bits = bits_of<uint32_t>(scaled);
  const int32_t exponent = static_cast<int32_t>(bits - 0x3f3504f3u) >> 23;
  const float f = bits_of<float>(bits - (static_cast<uint32_t>(exponent) << 23)) - 1.0f;
  *e = static_cast<float>(exponent) - (tiny ? 23.0f : 0.0f);
  // relative error 7.3e-10
  float p = 6.915127605e-02f;
  p = p * f + -1.178967465e-01f;
  p = p * f + 1.187301350e-01f;
  p = p * f + -1.238437387e-01f;
  p = p * f + 1.421865639e-01f;
  p = p * f + -1.666924928e-01f;
  p = p * f + 2.000222664e-01f;
  p = p * f + -2.499998663e-01f;
  p = p * f + 3.333331044e-01f;
  const float f2 = f * f;
  return f + (p * f * f2 - 0.5f * f2);
}
TENSORD_INLINE float log_edges(float x, float result) {
  result = x < kInfinity<float> ? result : x;  // infinity and NaN stay
  result = x == 0.0f ? -kInfinity<float> : result;
  return x < 0.0f ? kNaN<float> : result;
}
TENSORD_INLINE float log(float x) {
  float e;
  const float m = log_parts(x, &e);
  return log_edges(x, e * 0.693359375f + (m + e * -2.12194440054690583e-4f));
}
TENSORD_INLINE float log2(float x) {
  float e;
  const float m = log_parts(x, &e);
  return log_edges(x, m * 1.44269504088896341f + e);
}
TENSORD_INLINE float log10(float x) {
  float e;
  const float m = log_parts(x, &e);
  return log_edges(x, e * 0.301025390625f + (m * 0.434294481903251828f + e * 4.60503898119521374e-6f));
}
TENSORD_INLINE float log1p(float x) {
  const float u = 1.0f + x;
  float e;
  const float m = log_parts(u, &e);
  const float correction = (x - (u - 1.0f)) / u;  // what 1 + x lost by rounding
  const float result = e * 0.693359375f + (m + (correction + e * -2.12194440054690583e-4f));
  const float edged = log_edges(u, result);
  return abs(x) < 1e-7f ? x : edged;
}

TENSORD_INLINE float tanh(float x) {
  const float a = abs(x);
  const float z = x * x;
  // |x| <= 0.625, relative error 1.5e-10
  float p = 2.147541878e-03f;
  p = p * z + -8.182679853e-03f;
  p = p * z + 2.170296980e-02f;
  p = p * z + -5.394720483e-02f;
  p = p * z + 1.333320977e-01f;
  p = p * z + -3.333333091e-01f;
  const float near = x + x * (z * p);
  const float far = 1.0f - 2.0f / (exp(2.0f * a) + 1.0f);
  const float signed_far = bits_of<float>(bits_of<uint32_t>(far) | (bits_of<uint32_t>(x) & 0x80000000u));
  return a < 0.625f ? near : signed_far;
}

// x + x P(x^2) near 0, error 9e-9; beyond it 1 - exp(Q(|x|)), Q being the logarithm of 1 - erf(|x|) to 2e-9. So
// it ends at 1 exactly (from 3.92 on, where the bound of 4 leaves nothing of the exponential), and 1 - erf(x) keeps
// the digits that single precision has: gelu multiplies it by x.
TENSORD_INLINE float erf(float x) {
  const float z = x * x;
  float p = -6.203252706e-04f;
  p = p * z + 5.032180808e-03f;
  p = p * z + -2.679146267e-02f;
  p = p * z + 1.128245518e-01f;
  p = p * z + -3.761255145e-01f;
  p = p * z + 1.283791067e-01f;
  const float near = x + x * p;  // ends with a sum: 1 + erf(x) is then rounded alike in all loops
  const float a = abs(x) > 4.0f ? 4.0f : abs(x);
  float q = 2.009973541e-04f;
  q = q * a + -3.092302242e-03f;
  q = q * a + 2.242025360e-02f;
  q = q * a + -1.043275744e-01f;
  q = q * a + -6.367371678e-01f;
  q = q * a + -1.127936125e+00f;
  q = q * a + -1.335666311e-04f;
  const float far = 1.0f - exp(q);
  const float signed_far = bits_of<float>(bits_of<uint32_t>(far) | (bits_of<uint32_t>(x) & 0x80000000u));
  return a < 0.875f ? near : signed_far;
}
#endif

// Numbers of the compute type from doubles in a formula: num<T>(0.5).
template <class T>
TENSORD_INLINE T num(double value) {
  return static_cast<T>(value);
}

template <class T>
TENSORD_INLINE T sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}
template <class T>
TENSORD_INLINE T softplus(T x) {
  return log1p(exp(x));
}
template <class T>
TENSORD_INLINE T log_sigmoid(T x) {
  return (x < T(0) ? x : T(0)) - log1p(exp(-abs(x)));
}
template <class T>
TENSORD_INLINE T gelu(T x) {
  return num<T>(0.5) * x * (T(1) + erf(x * num<T>(0.70710678118654752440)));
}
template <class T>
TENSORD_INLINE T gelu_tanh(T x) {
  return num<T>(0.5) * x * (T(1) + tanh(num<T>(0.79788456080286535588) * (x + num<T>(0.044715) * x * x * x)));
}
// Derivatives: of x sigmoid(x), and of x times the normal distribution function, exactly and by tanh.
template <class T>
TENSORD_INLINE T silu_slope(T x) {
  const T s = sigmoid(x);
  return s * (T(1) + x * (T(1) - s));
}
template <class T>
TENSORD_INLINE T gelu_slope(T x) {
  const T cdf = num<T>(0.5) * (T(1) + erf(x * num<T>(0.70710678118654752440)));
  return cdf + x * exp(num<T>(-0.5) * x * x) * num<T>(0.39894228040143267794);
}
template <class T>
TENSORD_INLINE T gelu_tanh_slope(T x) {
  const T t = tanh(num<T>(0.79788456080286535588) * (x + num<T>(0.044715) * x * x * x));
  const T inner = num<T>(0.79788456080286535588) * (T(1) + num<T>(0.134145) * x * x);
  return num<T>(0.5) * ((T(1) + t) + x * (T(1) - t * t) * inner);
}
// log(1 + exp(x)) that stays x where exp would overflow.
template <class T>
TENSORD_INLINE T softplus_safe(T x) {
  return x > T(20) ? x : log1p(exp(x));
}
template <class T>
TENSORD_INLINE T logit_clamped(T x, T low, T high) {
  const T z = x < low ? low : x > high ? high : x;
  return log(z / (T(1) - z));
}
// NaN in either operand gives NaN.
template <class T>
TENSORD_INLINE T maximum(T a, T b) {
  const T larger = a > b ? a : b;  // b when it is NaN
  return isnan(a) ? a : larger;
}
template <class T>
TENSORD_INLINE T minimum(T a, T b) {
  const T smaller = a < b ? a : b;
  return isnan(a) ? a : smaller;
}
// NaN only when both are.
template <class T>
TENSORD_INLINE T fmax(T a, T b) {
  const T larger = a >= b ? a : b;
  return isnan(b) ? a : larger;
}
template <class T>
TENSORD_INLINE T fmin(T a, T b) {
  const T smaller = a <= b ? a : b;
  return isnan(b) ? a : smaller;
}
template <class T>
TENSORD_INLINE T sign(T x) {
  return static_cast<T>(static_cast<int>(x > T(0)) - static_cast<int>(x < T(0)));
}
template <class T>
TENSORD_INLINE T square(T x) {
  return x * x;
}

TENSORD_INLINE int64_t floor(int64_t x) { return x; }
TENSORD_INLINE int64_t ceil(int64_t x) { return x; }
TENSORD_INLINE int64_t trunc(int64_t x) { return x; }
TENSORD_INLINE int64_t rint(int64_t x) { return x; }

// Division whose result goes towards minus infinity; integer division by zero is refused
// before the loop, so 1 stands in for it here.
template <class T>
TENSORD_INLINE T div_floor(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const T d = b == 0 ? 1 : b;
    if (d == -1) return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(a));
    const T q = a / d;
    return q - ((a % d != 0) && ((a < 0) != (d < 0)) ? 1 : 0);
  } else {
    if (b == T(0)) return a / b;
    T mod = fmod(a, b);
    T div = (a - mod) / b;
    if (mod != T(0) && ((b < T(0)) != (mod < T(0)))) div -= T(1);
    if (div == T(0)) return copysign(T(0), a / b);
    T floored = floor(div);
    if (div - floored > num<T>(0.5)) floored += T(1);
    return floored;
  }
}
template <class T>
TENSORD_INLINE T div_trunc(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const T d = b == 0 ? 1 : b;
    return d == -1 ? static_cast<T>(uint64_t{0} - static_cast<uint64_t>(a)) : a / d;
  } else {
    return trunc(a / b);
  }
}
// Python's %: the sign of the divisor.
template <class T>
TENSORD_INLINE T remainder(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const T d = b == 0 || b == -1 ? 1 : b;
    const T r = a % d;
    return r != 0 && ((r < 0) != (d < 0)) ? r + d : r;
  } else {
    const T r = fmod(a, b);
    return r != T(0) && ((r < T(0)) != (b < T(0))) ? r + b : r;
  }
}
// C's %: the sign of the dividend.
template <class T>
TENSORD_INLINE T c_remainder(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const T d = b == 0 || b == -1 ? 1 : b;
    return a % d;
  } else {
    return fmod(a, b);
  }
}
// Integers wrap around; negative exponents give 0 but for bases 1 and -1.
TENSORD_INLINE int64_t pow(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 != 0 ? -1 : 1) : 0;
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (; exponent != 0; exponent >>= 1, factor *= factor) {
    if (exponent & 1) result *= factor;
  }
  return static_cast<int64_t>(result);
}
TENSORD_INLINE int64_t shift_left(int64_t a, int64_t b) {
  return b < 0 || b > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
}
TENSORD_INLINE int64_t shift_right(int64_t a, int64_t b) { return b < 0 || b > 63 ? (a < 0 ? -1 : 0) : a >> b; }

template <class T>
TENSORD_INLINE T xlogy(T a, T b) {
  return isnan(b) ? b : a == T(0) ? T(0) : a * log(b);
}
template <class T>
TENSORD_INLINE T heaviside(T a, T b) {
  return a == T(0) ? b : static_cast<T>(static_cast<int>(a > T(0)));  // 0 for NaN, as PyTorch's
}

// Inverse of erf: the rational start value of M. Giles ("Approximating the erfinv function",
// GPU Computing Gems 2, 2010; single precision polynomial), then two Newton steps.
template <class T>
TENSORD_INLINE T erfinv(T x) {
  if (abs(x) >= T(1)) return abs(x) == T(1) ? copysign(kInfinity<T>, x) : kNaN<T>;
  const double y = static_cast<double>(x);
  double w = -::log((1.0 - y) * (1.0 + y)), p;
  if (w < 5.0) {
    w -= 2.5;
    p = 2.81022636e-08;
    p = 3.43273939e-07 + p * w;
    p = -3.5233877e-06 + p * w;
    p = -4.39150654e-06 + p * w;
    p = 0.00021858087 + p * w;
    p = -0.00125372503 + p * w;
    p = -0.00417768164 + p * w;
    p = 0.246640727 + p * w;
    p = 1.50140941 + p * w;
  } else {
    w = ::sqrt(w) - 3.0;
    p = -0.000200214257;
    p = 0.000100950558 + p * w;
    p = 0.00134934322 + p * w;
    p = -0.00367342844 + p * w;
    p = 0.00573950773 + p * w;
    p = -0.0076224613 + p * w;
    p = 0.00943887047 + p * w;
    p = 1.00167406 + p * w;
    p = 2.83297682 + p * w;
  }
  double r = p * y;
  for (int step = 0; step < 2; ++step) r -= (::erf(r) - y) / (1.12837916709551257390 * ::exp(-r * r));
  return static_cast<T>(r);
}

}  // namespace tensord::kernels::formula
