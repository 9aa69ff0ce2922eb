#pragma once

#include <complex>
#include <string_view>
#include <utility>

#include "core/tensor/tensor.h"

namespace tensord {

// Element types of complex64 and complex128. They are apart from dtype.h's lists on purpose: operators
// that know real numbers only refuse complex tensors by name, in dispatch_all.
using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

template <>
struct DTypeOf<Complex64> {
  static constexpr DType value = DType::kComplex64;
};
template <>
struct DTypeOf<Complex128> {
  static constexpr DType value = DType::kComplex128;
};

// Calls fn.template operator()<T>() with Complex64 or Complex128.
template <class Fn>
decltype(auto) dispatch_complex(DType dtype, std::string_view op, Fn&& fn) {
  switch (dtype) {
    case DType::kComplex64: return fn.template operator()<Complex64>();
    case DType::kComplex128: return fn.template operator()<Complex128>();
    default: fail_dtype(op, dtype);
  }
}

// Every dtype that a tensor can have.
template <class Fn>
decltype(auto) dispatch_any(DType dtype, std::string_view op, Fn&& fn) {
  if (is_complex(dtype)) return dispatch_complex(dtype, op, std::forward<Fn>(fn));
  return dispatch_all(dtype, op, std::forward<Fn>(fn));
}

// float32 of complex64, float64 of complex128; any other dtype itself.
DType real_dtype(DType dtype);
// complex128 of float64, complex64 of every other real dtype; a complex dtype itself.
DType complex_dtype(DType dtype);

// The single element of a tensor of any dtype. Throws Error when numel() != 1.
std::complex<double> item_complex(const Tensor& tensor);

// The same memory as pairs of real numbers, with a last dimension of 2; and back. Views, without autograd.
// `as_complex` throws Error{kInvalidArgument} where the memory is not such pairs.
Tensor as_real_pairs(const Tensor& complex);
Tensor as_complex(const Tensor& pairs);

}  // namespace tensord
