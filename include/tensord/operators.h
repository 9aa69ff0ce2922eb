#pragma once

#include "tensord/ops.h"

// The operators + - * / % & | ^ ~ and the comparisons for tensors and numbers, with Python's meaning. Each calls the
// operator of that name, with its type promotion and broadcasting. A comparison returns a bool tensor. An assignment
// (+= …) writes to the tensor in place.
namespace tensord {

#define TENSORD_OPERATOR(SIGN, NAME)                                                   \
  inline Tensor operator SIGN(const Tensor& a, const Tensor& b) { return NAME(a, b); } \
  inline Tensor operator SIGN(const Tensor& a, const Scalar& b) { return NAME(a, b); }
TENSORD_OPERATOR(+, add)
TENSORD_OPERATOR(-, sub)
TENSORD_OPERATOR(*, mul)
TENSORD_OPERATOR(/, div)
TENSORD_OPERATOR(%, remainder)
TENSORD_OPERATOR(&, bitwise_and)
TENSORD_OPERATOR(|, bitwise_or)
TENSORD_OPERATOR(^, bitwise_xor)
TENSORD_OPERATOR(==, eq)
TENSORD_OPERATOR(!=, ne)
TENSORD_OPERATOR(<, lt)
TENSORD_OPERATOR(<=, le)
TENSORD_OPERATOR(>, gt)
TENSORD_OPERATOR(>=, ge)
#undef TENSORD_OPERATOR

inline Tensor operator+(const Scalar& a, const Tensor& b) { return add(b, a); }
inline Tensor operator-(const Scalar& a, const Tensor& b) { return rsub(b, a); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return mul(b, a); }
// Multiplies the number by the reciprocal, as PyTorch does. The last bit may differ from a division.
inline Tensor operator/(const Scalar& a, const Tensor& b) { return mul(reciprocal(b), a); }
inline Tensor operator-(const Tensor& a) { return neg(a); }
inline Tensor operator~(const Tensor& a) { return bitwise_not(a); }

#define TENSORD_ASSIGNMENT(SIGN, NAME)                                                           \
  inline const Tensor& operator SIGN(const Tensor& a, const Tensor& b) { return NAME(a, b), a; } \
  inline const Tensor& operator SIGN(const Tensor& a, const Scalar& b) { return NAME(a, b), a; }
TENSORD_ASSIGNMENT(+=, add_)
TENSORD_ASSIGNMENT(-=, sub_)
TENSORD_ASSIGNMENT(*=, mul_)
TENSORD_ASSIGNMENT(/=, div_)
#undef TENSORD_ASSIGNMENT

}  // namespace tensord
