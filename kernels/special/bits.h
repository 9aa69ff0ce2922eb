#pragma once

#include "kernels/base/series.h"

// Neighbors among floating point numbers, and divisors of whole ones.
namespace tensord::kernels::special {

TENSORD_SPECIAL double nextafter(double a, double b) { return ::nextafter(a, b); }
TENSORD_SPECIAL float nextafter(float a, float b) { return ::nextafterf(a, b); }
// Of bfloat16 numbers held as T; the upper half of a float is one.
template <class T>
TENSORD_SPECIAL T nextafter_bfloat16(T from, T to) {
  const auto a = static_cast<float>(from), b = static_cast<float>(to);
  if (a != a || b != b) return kNan<T>;
  if (a == b) return to;
  const auto bits = __builtin_bit_cast(uint32_t, a);
  if (a == 0) return static_cast<T>(__builtin_bit_cast(float, b > 0 ? 0x00010000u : 0x80010000u));
  const bool grows = (a < b) == (a > 0);
  return static_cast<T>(__builtin_bit_cast(float, grows ? bits + 0x10000u : bits - 0x10000u));
}

// Without sign, so that the smallest int64 is not a special case.
TENSORD_SPECIAL uint64_t magnitude(int64_t a) {
  return a < 0 ? 0 - static_cast<uint64_t>(a) : static_cast<uint64_t>(a);
}
TENSORD_SPECIAL int64_t gcd(int64_t first, int64_t second) {
  uint64_t a = magnitude(first), b = magnitude(second);
  while (a != 0) {
    const uint64_t rest = b % a;
    b = a;
    a = rest;
  }
  return static_cast<int64_t>(b);
}
TENSORD_SPECIAL int64_t lcm(int64_t a, int64_t b) {
  const auto divisor = static_cast<uint64_t>(gcd(a, b));
  return divisor == 0 ? 0 : static_cast<int64_t>(magnitude(a) / divisor * magnitude(b));
}

}  // namespace tensord::kernels::special
