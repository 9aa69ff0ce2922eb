#pragma once

#include "tensord/ops.h"

// + - * / % & | ^ ~ and comparisons of tensors and numbers, as Python has them: each is the operator of that name, with
// its promotion and broadcasting. Comparisons give a tensor of bool. Assignments (+= …) write the tensor in place.
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
// As PyTorch: the reciprocal times the number, which differs from a division in the last bit.
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
