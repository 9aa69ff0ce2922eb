#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/tensor/half.h"

namespace tensord {

// Element types. The numbers are PyTorch's, because TorchScript code stores
// dtypes as integers.
enum class DType : int8_t {
  kUInt8 = 0,
  kInt8 = 1,
  kInt16 = 2,
  kInt32 = 3,
  kInt64 = 4,
  kFloat16 = 5,
  kFloat32 = 6,
  kFloat64 = 7,
  kComplex32 = 8,  // declared so that it can be refused by name
  kComplex64 = 9,  // complex.h has the types of elements
  kComplex128 = 10,
  kBool = 11,
  // Only for quantized tensors (core/ops/quantized.h).
  kQInt8 = 12,
  kQUInt8 = 13,
  kQInt32 = 14,
  kBFloat16 = 15,
  kQUInt4x2 = 16,  // two elements in a byte
};

size_t size_of(DType dtype);       // bytes of one element
const char* name_of(DType dtype);  // as PyTorch prints it without "torch.": "float32"
bool is_floating(DType dtype);
bool is_integral(DType dtype, bool include_bool);
inline bool is_complex(DType dtype) {
  return dtype == DType::kComplex32 || dtype == DType::kComplex64 || dtype == DType::kComplex128;
}
bool is_signed(DType dtype);

// Throws Error{kUnimplemented} naming the dtype if no tensor of it can be made, kInvalidArgument if the number is not a
// dtype.
DType dtype_from_number(int64_t number);

// PyTorch's promotion of two tensors' dtypes of the same category rank.
DType promote_types(DType a, DType b);

// Whether a result of dtype `from` may be written into a tensor of dtype `to`
// by an in-place or `out=` operator (not float to int, not number to bool).
bool can_cast(DType from, DType to);

template <class T>
struct DTypeOf;
#define TENSORD_FOR_EACH_DTYPE(X) \
  X(uint8_t, kUInt8)              \
  X(int8_t, kInt8)                \
  X(int16_t, kInt16)              \
  X(int32_t, kInt32)              \
  X(int64_t, kInt64)              \
  X(Half, kFloat16)               \
  X(float, kFloat32)              \
  X(double, kFloat64)             \
  X(bool, kBool)                  \
  X(BFloat16, kBFloat16)
#define TENSORD_DTYPE_OF(TYPE, ENUM)            \
  template <>                                   \
  struct DTypeOf<TYPE> {                        \
    static constexpr DType value = DType::ENUM; \
  };
TENSORD_FOR_EACH_DTYPE(TENSORD_DTYPE_OF)
#undef TENSORD_DTYPE_OF
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

[[noreturn]] void fail_dtype(std::string_view op, DType dtype);

// Calls fn.template operator()<T>() with the C++ type of `dtype`:
//   dispatch_all(x.dtype(), "fill_", [&]<class T>() { ... });
template <class Fn>
decltype(auto) dispatch_all(DType dtype, std::string_view op, Fn&& fn) {
  switch (dtype) {
#define TENSORD_CASE(TYPE, ENUM) \
  case DType::ENUM: return fn.template operator()<TYPE>();
    TENSORD_FOR_EACH_DTYPE(TENSORD_CASE)
#undef TENSORD_CASE
    default: fail_dtype(op, dtype);
  }
}

// float16, bfloat16, float32, float64.
template <class Fn>
decltype(auto) dispatch_floating(DType dtype, std::string_view op, Fn&& fn) {
  switch (dtype) {
    case DType::kFloat16: return fn.template operator()<Half>();
    case DType::kBFloat16: return fn.template operator()<BFloat16>();
    case DType::kFloat32: return fn.template operator()<float>();
    case DType::kFloat64: return fn.template operator()<double>();
    default: fail_dtype(op, dtype);
  }
}

// uint8, int8, int16, int32, int64 (no bool).
template <class Fn>
decltype(auto) dispatch_integral(DType dtype, std::string_view op, Fn&& fn) {
  switch (dtype) {
    case DType::kUInt8: return fn.template operator()<uint8_t>();
    case DType::kInt8: return fn.template operator()<int8_t>();
    case DType::kInt16: return fn.template operator()<int16_t>();
    case DType::kInt32: return fn.template operator()<int32_t>();
    case DType::kInt64: return fn.template operator()<int64_t>();
    default: fail_dtype(op, dtype);
  }
}

// Type in which reduced-precision elements are computed: float for Half and BFloat16.
template <class T>
struct ComputeTypeOf {
  using type = T;
};
template <>
struct ComputeTypeOf<Half> {
  using type = float;
};
template <>
struct ComputeTypeOf<BFloat16> {
  using type = float;
};
template <class T>
using ComputeType = typename ComputeTypeOf<T>::type;

}  // namespace tensord
