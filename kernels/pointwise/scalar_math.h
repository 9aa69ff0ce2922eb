#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "core/base/error.h"

// Python's integer and float arithmetic on numbers of a script. Overflow wraps, as in libtorch.
namespace tensord::kernels {

inline int64_t wrap_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t wrap_subtract(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
inline int64_t wrap_multiply(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
inline int64_t wrap_negate(int64_t a) { return wrap_subtract(0, a); }

// Rounded towards minus infinity; ints throw Error on division by zero.
int64_t floor_divide(int64_t a, int64_t b);
double floor_divide(double a, double b);
// Has the sign of the divisor.
int64_t floor_remainder(int64_t a, int64_t b);
double floor_remainder(double a, double b);

// As the processor converts: what does not fit becomes the smallest int.
inline int64_t float_to_int(double value) {
  return value >= -9.2233720368547758e18 && value < 9.2233720368547758e18 ? static_cast<int64_t>(value) : INT64_MIN;
}

// Of a number without a fraction. 2^63 itself passes in libtorch, and becomes the smallest int.
inline int64_t whole_number(double value) {
  check(std::abs(value) <= 9.2233720368547758e18, "Cannot convert float ", std::to_string(value), " to integer");
  return float_to_int(value);
}

}  // namespace tensord::kernels
