#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace tensord::kernels {

// Numbers of all dtypes as unsigned integers in the same order, so that sorting is compiled for two types.
template <class T>
using SortKey = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// NaN has the largest key, which no other floating-point number has; 0 and -0 have the same one.
template <class T>
SortKey<T> sort_key(T value) {
  using Key = SortKey<T>;
  constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<Key>(static_cast<std::make_signed_t<Key>>(value)) ^ kSign;
  } else if constexpr (sizeof(T) < sizeof(float)) {
    return sort_key(static_cast<float>(value));
  } else {
    if (value != value) return ~Key{0};  // NOLINT(misc-redundant-expression)
    if (value == 0) return kSign;
    const Key bits = std::bit_cast<Key>(value);
    return bits & kSign ? ~bits : bits | kSign;
  }
}

}  // namespace tensord::kernels
