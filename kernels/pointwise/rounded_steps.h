#pragma once

#include "kernels/base/math.h"

// Formulas of which PyTorch rounds each step to the 16-bit type of the tensors, H.
namespace tensord::kernels::formula {

template <class H, class T>
TENSORD_INLINE T rounded_to(T x) {
  return static_cast<T>(static_cast<float>(H(static_cast<float>(x))));
}

// As PyTorch 1.13 has it.
template <class H, class T>
TENSORD_INLINE T div_floor_by_steps(T a, T b) {
  if (b == T(0)) return a / b;
  const T mod = rounded_to<H>(fmod(a, b));
  T div = rounded_to<H>(rounded_to<H>(a - mod) / b);
  if (mod != T(0) && ((b < T(0)) != (mod < T(0)))) div = rounded_to<H>(div - T(1));
  if (div == T(0)) return copysign(T(0), a / b);
  const T floored = floor(div);
  return rounded_to<H>(div - floored) > num<T>(0.5) ? rounded_to<H>(floored + T(1)) : floored;
}
template <class H, class T>
TENSORD_INLINE T pow_cube_by_steps(T a) {
  return rounded_to<H>(a * a) * a;
}
template <class H, class T>
TENSORD_INLINE T pow_reciprocal_square_by_steps(T a) {
  return T(1) / rounded_to<H>(a * a);
}
template <class H, class T>
TENSORD_INLINE T xlogy_by_steps(T a, T b) {
  return isnan(b) ? b : a == T(0) ? T(0) : a * rounded_to<H>(log(b));
}
template <class H, class T>
TENSORD_INLINE T xlog1py_by_steps(T a, T b) {
  return isnan(b) ? b : a == T(0) ? T(0) : a * rounded_to<H>(log1p(b));
}

}  // namespace tensord::kernels::formula
