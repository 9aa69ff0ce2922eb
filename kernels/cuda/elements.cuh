#pragma once

// Elements of dtypes that are known at run time.
#include "kernels/cuda/device.cuh"  // first

#include "core/tensor/half.h"

namespace tensord::cuda {

// DType's numbers.
enum Element : int8_t {
  kU8 = 0,
  kI8 = 1,
  kI16 = 2,
  kI32 = 3,
  kI64 = 4,
  kF16 = 5,
  kF32 = 6,
  kF64 = 7,
  kC64 = 9,
  kC128 = 10,
  kBoolean = 11,
  kBF16 = 15,
};

template <class T>
struct ComputeOf {
  using type = T;
};
template <>
struct ComputeOf<Half> {
  using type = float;
};
template <>
struct ComputeOf<BFloat16> {
  using type = float;
};

// Converts to a type of computation (float, double, int64_t) and back, as strided_copy does.
template <class To, class From>
__device__ __forceinline__ To widened(From value) {
  return static_cast<To>(static_cast<typename ComputeOf<From>::type>(value));
}
template <class T>
struct IsFloating {
  static constexpr bool value = false;
};
template <>
struct IsFloating<float> {
  static constexpr bool value = true;
};
template <>
struct IsFloating<double> {
  static constexpr bool value = true;
};
// A floating-point value as an integer: by way of int64, as in PyTorch on the CPU.
__device__ __forceinline__ int64_t to_int64(double wide) {
  if (!(wide >= -9.2233720368547758e18 && wide < 9.2233720368547758e18)) return INT64_MIN;
  return static_cast<int64_t>(wide);
}
template <class To>
struct Narrow {
  template <class From>
  static __device__ __forceinline__ To of(From value) {
    if constexpr (IsFloating<From>::value && !IsFloating<To>::value)
      return static_cast<To>(to_int64(static_cast<double>(value)));
    else
      return static_cast<To>(value);
  }
};
template <>
struct Narrow<bool> {
  template <class From>
  static __device__ __forceinline__ bool of(From value) {
    return value != From(0);
  }
};
template <>
struct Narrow<Half> {
  template <class From>
  static __device__ __forceinline__ Half of(From value) {
    return Half(static_cast<float>(value));
  }
};
template <>
struct Narrow<BFloat16> {
  template <class From>
  static __device__ __forceinline__ BFloat16 of(From value) {
    return BFloat16(static_cast<float>(value));
  }
};

// Calls CASE(dtype number, type) for each real dtype.
#define TENSORD_FOR_EACH_ELEMENT(CASE) \
  CASE(kU8, uint8_t)                   \
  CASE(kI8, int8_t)                    \
  CASE(kI16, int16_t)                  \
  CASE(kI32, int32_t)                  \
  CASE(kI64, int64_t)                  \
  CASE(kF16, Half)                     \
  CASE(kF32, float)                    \
  CASE(kF64, double)                   \
  CASE(kBoolean, bool)                 \
  CASE(kBF16, BFloat16)

// The dtype that has a type of computation as its own. Its accesses are inlined; those of other dtypes are calls, which
// compile faster.
template <class T>
struct OwnElement {
  static constexpr int8_t value = kI64;
};
template <>
struct OwnElement<float> {
  static constexpr int8_t value = kF32;
};
template <>
struct OwnElement<double> {
  static constexpr int8_t value = kF64;
};
template <>
struct OwnElement<bool> {
  static constexpr int8_t value = kBoolean;
};

template <class T>
TENSORD_DEVICE_CALL T load_other_element(const void* data, int8_t dtype, int64_t i) {
  switch (dtype) {
#define CASE(NUMBER, TYPE) \
  case NUMBER: return widened<T>(static_cast<const TYPE*>(data)[i]);
    TENSORD_FOR_EACH_ELEMENT(CASE)
#undef CASE
    default: return T(0);
  }
}
// One element as T.
template <class T>
__device__ __forceinline__ T load_element(const void* data, int8_t dtype, int64_t i) {
  if (dtype == OwnElement<T>::value) return static_cast<const T*>(data)[i];
  return load_other_element<T>(data, dtype, i);
}

template <class T>
TENSORD_DEVICE_CALL void store_other_element(void* data, int8_t dtype, int64_t i, T value) {
  switch (dtype) {
#define CASE(NUMBER, TYPE) \
  case NUMBER: static_cast<TYPE*>(data)[i] = Narrow<TYPE>::of(value); break;
    TENSORD_FOR_EACH_ELEMENT(CASE)
#undef CASE
    default: break;
  }
}
template <class T>
__device__ __forceinline__ void store_element(void* data, int8_t dtype, int64_t i, T value) {
  if (dtype == OwnElement<T>::value)
    static_cast<T*>(data)[i] = value;
  else
    store_other_element(data, dtype, i, value);
}

// Four contiguous elements at once, the first at a multiple of four.
template <class T>
TENSORD_DEVICE_CALL Pack<T, 4> load_other_four(const void* data, int8_t dtype, int64_t i) {
  Pack<T, 4> out;
  switch (dtype) {
#define CASE(NUMBER, TYPE)                                                       \
  case NUMBER: {                                                                 \
    const Pack<TYPE, 4> pack = load_pack<4>(static_cast<const TYPE*>(data) + i); \
    for (int k = 0; k < 4; ++k) out.at[k] = widened<T>(pack.at[k]);              \
    break;                                                                       \
  }
    TENSORD_FOR_EACH_ELEMENT(CASE)
#undef CASE
    default: break;
  }
  return out;
}
template <class T>
__device__ __forceinline__ Pack<T, 4> load_four(const void* data, int8_t dtype, int64_t i) {
  if (dtype == OwnElement<T>::value) return load_pack<4>(static_cast<const T*>(data) + i);
  return load_other_four<T>(data, dtype, i);
}

template <class T>
TENSORD_DEVICE_CALL void store_other_four(void* data, int8_t dtype, int64_t i, Pack<T, 4> values) {
  switch (dtype) {
#define CASE(NUMBER, TYPE)                                                   \
  case NUMBER: {                                                             \
    Pack<TYPE, 4> pack;                                                      \
    for (int k = 0; k < 4; ++k) pack.at[k] = Narrow<TYPE>::of(values.at[k]); \
    store_pack(static_cast<TYPE*>(data) + i, pack);                          \
    break;                                                                   \
  }
    TENSORD_FOR_EACH_ELEMENT(CASE)
#undef CASE
    default: break;
  }
}
template <class T>
__device__ __forceinline__ void store_four(void* data, int8_t dtype, int64_t i, const Pack<T, 4>& values) {
  if (dtype == OwnElement<T>::value)
    store_pack(static_cast<T*>(data) + i, values);
  else
    store_other_four(data, dtype, i, values);
}

}  // namespace tensord::cuda
