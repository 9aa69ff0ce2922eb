#pragma once

// What PTX's instructions mean, for the code that translate.py makes. A register is an unsigned word; `in` reads it as
// a type, `out` makes one of a result.
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tests/cuda/emulated/cuda_emulated.h"
#include "tests/cuda/emulated/kernel_names.h"

namespace tensord::cuda::emulated::ptx {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s8 = int8_t;
using s16 = int16_t;
using s32 = int32_t;
using s64 = int64_t;
using b8 = u8;
using b16 = u16;
using b32 = u32;
using b64 = u64;
using f32 = float;
using f64 = double;

template <class T>
using Word = std::conditional_t<sizeof(T) == 4, u32, u64>;

template <class T, class R>
T in(R r) {
  if constexpr (std::is_same_v<T, bool>)
    return r != 0;
  else if constexpr (std::is_floating_point_v<T>)
    return std::bit_cast<T>(static_cast<Word<T>>(r));
  else
    return static_cast<T>(r);
}
template <class R, class T>
R out(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<R>(std::bit_cast<Word<T>>(value));
  else
    return static_cast<R>(value);
}

// --- memory

inline u64 global(u64 at) { return reinterpret_cast<u64>(seen_or_own(reinterpret_cast<const void*>(at))); }
inline u64 aligned(u64 at, u64 size) {
  if (at % size != 0) fault("an access that is not aligned");
  return at;
}
template <class T>
T load(u64 at) {
  return *reinterpret_cast<const T*>(at);
}
template <class T>
void store(u64 at, T value) {
  *reinterpret_cast<T*>(at) = value;
}

// --- arithmetic

// fn of the numbers, rounded in this direction. They are volatile so that it is done while the direction is set.
template <class F, class... T>
auto rounded(int direction, const F& fn, T... numbers) {
  const int before = std::fegetround();
  std::fesetround(direction);
  const auto run = [&](volatile T... kept) {
    volatile auto result = fn(kept...);
    return result;
  };
  const auto result = run(numbers...);
  std::fesetround(before);
  return result;
}
template <class T>
T high_product(T a, T b) {
  using Twice = std::conditional_t<sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
                                   std::conditional_t<std::is_signed_v<T>, s64, u64>>;
  return static_cast<T>(static_cast<Twice>(a) * static_cast<Twice>(b) >> sizeof(T) * 8);
}
// Shifts by more than the width give what is left: nothing, or the sign.
template <class T>
T shl_of(T a, u32 by) {
  return by >= sizeof(T) * 8 ? T(0) : static_cast<T>(static_cast<u64>(a) << by);
}
template <class T>
T shr_of(T a, u32 by) {
  if (by >= sizeof(T) * 8) return std::is_signed_v<T> && a < T(0) ? static_cast<T>(-1) : T(0);
  return static_cast<T>(a >> by);
}
// A NaN loses.
template <class T>
T min_of(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
    if (a == b) return std::signbit(a) ? a : b;
  }
  return a < b ? a : b;
}
template <class T>
T max_of(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
    if (a == b) return std::signbit(a) ? b : a;
  }
  return a < b ? b : a;
}
// By zero, what chips give.
template <class T>
T div_of(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a / b;
  if (b == T(0)) return static_cast<T>(-1);
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(0 - static_cast<u64>(a));
  return static_cast<T>(a / b);
}
template <class T>
T rem_of(T a, T b) {
  if (b == T(0)) return a;
  return std::is_signed_v<T> && b == static_cast<T>(-1) ? T(0) : static_cast<T>(a % b);
}
// Of a number that is whole already; beyond the range its end, 0 for NaN.
template <class To, class From>
To to_integer(From x) {
  using Limits = std::numeric_limits<To>;
  if (std::isnan(x)) return 0;
  if (x <= static_cast<From>(Limits::min())) return Limits::min();
  if (x >= static_cast<From>(Limits::max())) return Limits::max();
  return static_cast<To>(x);
}
template <class To, class From>
To saturated(From x) {
  return x > From(0) ? x < From(1) ? static_cast<To>(x) : To(1) : To(0);
}
template <class T>
T insert_bits(T a, T b, u32 at, u32 count) {
  constexpr u32 kBits = sizeof(T) * 8;
  if (count == 0 || at >= kBits) return b;
  const T mask = static_cast<T>((count >= kBits ? ~T(0) : (T(1) << count) - 1) << at);
  return static_cast<T>((b & ~mask) | (a << at & mask));
}

// --- lanes

// shfl.sync: `how` is its first letter, `limits` has the last lane of a segment and which bits tell segments apart.
inline u32 shuffled(char how, u32 value, u32 by, u32 limits, u32 mask, bool& is_inside) {
  const u32 lane = current->lane, segment = limits >> 8 & 31, last = (lane & segment) | (limits & 31 & ~segment);
  by &= 31;
  u32 from = lane;
  if (how == 'u') from = lane - by, is_inside = static_cast<s32>(from) >= static_cast<s32>(last);
  if (how == 'd') from = lane + by, is_inside = from <= last;
  if (how == 'b') from = lane ^ by, is_inside = from <= last;
  if (how == 'i') from = (lane & segment) | (by & ~segment), is_inside = from <= last;
  return shuffle(mask, value, is_inside ? from : lane);
}

}  // namespace tensord::cuda::emulated::ptx
