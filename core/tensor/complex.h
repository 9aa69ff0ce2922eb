#pragma once

#include <complex>
#include <string_view>
#include <utility>

#include "core/tensor/tensor.h"

namespace tensord {

// Element types of complex64 and complex128. dtype.h's lists do not contain them, so that an operator for real numbers
// refuses complex tensors by name, in dispatch_all.
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

// Covers every dtype that a tensor can have.
template <class Fn>
decltype(auto) dispatch_any(DType dtype, std::string_view op, Fn&& fn) {
  if (is_complex(dtype)) return dispatch_complex(dtype, op, std::forward<Fn>(fn));
  return dispatch_all(dtype, op, std::forward<Fn>(fn));
}

// complex64 → float32, complex128 → float64; any other dtype is returned as it is.
DType real_dtype(DType dtype);
// float64 → complex128, any other real dtype → complex64; a complex dtype is returned as it is.
DType complex_dtype(DType dtype);

// The single element of a tensor of any dtype. Throws Error when numel() != 1.
std::complex<double> item_complex(const Tensor& tensor);

// Views the same memory as pairs of real numbers, with a last dimension of 2, and back. Autograd does not see either.
// `as_complex` throws Error{kInvalidArgument} if the memory is not laid out as such pairs.
Tensor as_real_pairs(const Tensor& complex);
Tensor as_complex(const Tensor& pairs);

}  // namespace tensord
