#pragma once

// Results that threads of all blocks join their values to, in whatever order the threads come.
#include "kernels/cuda/elements.cuh"

namespace tensord::cuda {

template <size_t kBytes>
struct BitsOf {
  using type = uint8_t;
};
template <>
struct BitsOf<2> {
  using type = uint16_t;
};
template <>
struct BitsOf<4> {
  using type = unsigned;
};

// *to = join(*to, value) for elements of at most 32 bits: a compare-and-swap of the word that holds them.
template <class Small, class T, class Join>
__device__ __forceinline__ void join_within_word(Small* to, T value, const Join& join) {
  using Bits = typename BitsOf<sizeof(Small)>::type;
  const uintptr_t address = reinterpret_cast<uintptr_t>(to);
  unsigned* const word = reinterpret_cast<unsigned*>(address & ~uintptr_t{3});
  const unsigned shift = static_cast<unsigned>(address & 3) * 8, mask = unsigned{Bits(~Bits(0))} << shift;
  unsigned seen = load_relaxed(word);
  for (;;) {
    const Small before = __builtin_bit_cast(Small, static_cast<Bits>((seen & mask) >> shift));
    const Bits after = __builtin_bit_cast(Bits, Narrow<Small>::of(join(widened<T>(before), value)));
    const unsigned found = atomicCAS(word, seen, (seen & ~mask) | (unsigned{after} << shift));
    if (found == seen) return;
    seen = found;
  }
}
template <class Small, class T>
__device__ __forceinline__ void add_within_word(Small* to, T value) {
  join_within_word(to, value, [](T a, T b) { return static_cast<T>(a + b); });
}

// The same of elements of 64 bits.
template <class Wide, class T, class Join>
__device__ __forceinline__ void join_wide(Wide* to, T value, const Join& join) {
  using Bits = unsigned long long;
  Bits* const word = reinterpret_cast<Bits*>(to);
  Bits seen = load_relaxed(word);
  for (;;) {
    const Wide after = Narrow<Wide>::of(join(widened<T>(__builtin_bit_cast(Wide, seen)), value));
    const Bits found = atomicCAS(word, seen, __builtin_bit_cast(Bits, after));
    if (found == seen) return;
    seen = found;
  }
}

// data[i] = join(data[i], value).
template <class T, class Join>
__device__ __forceinline__ void atomic_join_element(void* data, int8_t dtype, int64_t i, T value, const Join& join) {
  switch (dtype) {
#define CASE(NUMBER, TYPE)                                         \
  case NUMBER:                                                     \
    if constexpr (sizeof(TYPE) == 8)                               \
      join_wide(static_cast<TYPE*>(data) + i, value, join);        \
    else                                                           \
      join_within_word(static_cast<TYPE*>(data) + i, value, join); \
    break;
    TENSORD_FOR_EACH_ELEMENT(CASE)
#undef CASE
    default: break;
  }
}

// data[i] += value.
template <class T>
TENSORD_DEVICE_CALL void atomic_add_element(void* data, int8_t dtype, int64_t i, T value) {
  switch (dtype) {
    case kF32: atomicAdd(static_cast<float*>(data) + i, static_cast<float>(value)); break;
    case kF64: atomicAdd(static_cast<double*>(data) + i, static_cast<double>(value)); break;
    case kI32: atomicAdd(static_cast<int*>(data) + i, static_cast<int>(value)); break;
    case kI64:
      atomicAdd(static_cast<unsigned long long*>(data) + i,
                static_cast<unsigned long long>(static_cast<int64_t>(value)));
      break;
    case kF16: add_within_word(static_cast<Half*>(data) + i, value); break;
    case kBF16: add_within_word(static_cast<BFloat16*>(data) + i, value); break;
    case kI16: add_within_word(static_cast<int16_t*>(data) + i, value); break;
    case kU8: add_within_word(static_cast<uint8_t*>(data) + i, value); break;
    case kI8: add_within_word(static_cast<int8_t*>(data) + i, value); break;
    case kBoolean: add_within_word(static_cast<bool*>(data) + i, value); break;
    default: break;
  }
}

// Calls fn(i) for all elements of planes (one for each sample and channel), whose results are added within their plane:
// a thread for each element, or, for sums in a fixed order, for each plane.
template <class Fn>
__device__ __forceinline__ void for_each_of_planes(bool is_ordered, bool is_last, int64_t samples, int64_t channels,
                                                   int64_t elements, const Fn& fn) {
  const int64_t planes = samples * channels;
  if (!is_ordered) {
    for (int64_t i = thread_index(); i < planes * elements; i += thread_count()) fn(i);
    return;
  }
  for (int64_t plane = thread_index(); plane < planes; plane += thread_count()) {
    const int64_t sample = plane / channels, channel = plane % channels;
    for (int64_t k = 0; k < elements; ++k)
      fn(is_last ? (sample * elements + k) * channels + channel : plane * elements + k);
  }
}

}  // namespace tensord::cuda
