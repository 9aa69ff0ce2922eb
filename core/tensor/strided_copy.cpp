#include "core/tensor/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/base/parallel.h"
#include "core/tensor/complex.h"
#include "core/tensor/loops.h"

namespace tensord {
namespace {

template <class T>
inline constexpr bool is_complex_type = std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>;

// As BFloat16's own conversion, but without a branch, so that loops over it are vectorized.
BFloat16 rounded(float value) {
  const auto x = __builtin_bit_cast(uint32_t, value);
  const uint32_t up = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16, nan = (x >> 16) | 0x40u;
  BFloat16 out;
  out.bits = static_cast<uint16_t>((x & 0x7fffffffu) > 0x7f800000u ? nan : up);
  return out;
}

// Long rows that are misaligned to each other: on some processors, string moves are ten times slower for them, and the
// C library uses those from 2 KiB on.
template <class T>
void copy_row(T* to, const T* from, int64_t count) {
  constexpr int64_t kPiece = 1024 / sizeof(T);
  const bool is_aligned = (reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from)) % 64 == 0;
  const int64_t piece = is_aligned ? count : kPiece;
  for (int64_t i = 0; i < count; i += piece)
    std::memcpy(to + i, from + i, static_cast<size_t>(std::min(piece, count - i)) * sizeof(T));
}

// A complex number that becomes a real one loses its imaginary part, as in PyTorch; a bool is value != 0.
template <class To, class From>
To convert(From value) {
  if constexpr (is_complex_type<From> && is_complex_type<To>) {
    return To(value);
  } else if constexpr (is_complex_type<From>) {
    if constexpr (std::is_same_v<To, bool>) return value != From(0);
    return convert<To>(value.real());
  } else if constexpr (is_complex_type<To>) {
    return To(convert<typename To::value_type>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return rounded(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, Half>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<ComputeType<From>> && std::is_integral_v<To>) {
    // Converts through int64, as PyTorch does, so that -1.0 becomes 255 in uint8 and nothing is undefined.
    const double wide = static_cast<double>(value);
    if (!(wide >= -9.2233720368547758e18 && wide < 9.2233720368547758e18)) {
      return static_cast<To>(std::numeric_limits<int64_t>::min());
    }
    return static_cast<To>(static_cast<int64_t>(wide));
  } else {
    return static_cast<To>(value);
  }
}

constinit HalfRows half_rows;

// The copy between two types, or null.
template <class To, class From>
auto row_function() -> void (*)(const From*, To*, int64_t) {
  if constexpr (std::is_same_v<To, float> && std::is_same_v<From, Half>) return half_rows.widen_half;
  if constexpr (std::is_same_v<To, float> && std::is_same_v<From, BFloat16>) return half_rows.widen_bfloat16;
  if constexpr (std::is_same_v<To, Half> && std::is_same_v<From, float>) return half_rows.narrow_half;
  if constexpr (std::is_same_v<To, BFloat16> && std::is_same_v<From, float>) return half_rows.narrow_bfloat16;
  return nullptr;
}

template <class To, class From>
void convert_row(To* to, const From* from, int64_t count, std::array<int64_t, 2> step) {
  if (step[0] != 1 || step[1] != 1) {
    for (int64_t i = 0; i < count; ++i) to[i * step[0]] = convert<To>(from[i * step[1]]);
  } else if (const auto row = row_function<To, From>()) {
    row(from, to, count);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = convert<To>(from[i]);
  }
}

// 16 × 16 blocks keep both sides of a transposition in cache lines.
template <class T>
void copy_transposed(T* target, const T* source, int64_t rows, int64_t columns, int64_t target_row,
                     int64_t source_column) {
  constexpr int64_t kBlock = 16;
  for (int64_t r0 = 0; r0 < rows; r0 += kBlock) {
    const int64_t r1 = std::min(rows, r0 + kBlock);
    for (int64_t c0 = 0; c0 < columns; c0 += kBlock) {
      const int64_t c1 = std::min(columns, c0 + kBlock);
      for (int64_t r = r0; r < r1; ++r) {
        for (int64_t c = c0; c < c1; ++c) target[r * target_row + c] = source[c * source_column + r];
      }
    }
  }
}

template <class To, class From>
void copy_loop(const Tensor& target, const Tensor& source) {
  To* to = target.data<To>();
  const From* from = source.data<From>();
  const LoopNest<2> nest(target.sizes(), {target.strides(), source.strides()});
  nest.parallel_rows(16384,
                     [&](const std::array<int64_t, 2>& offset, int64_t count, const std::array<int64_t, 2>& step) {
                       convert_row(to + offset[0], from + offset[1], count, step);
                     });
}

}  // namespace

void set_half_rows(const HalfRows& rows) { half_rows = rows; }

StridedCopy::StridedCopy(const Tensor& target, const Tensor& source)
    : nest_(target.sizes(), {target.strides(), source.strides()}),
      width_(size_of(target.dtype())),
      across_(nest_.ndim() - 1) {
  const size_t inner = nest_.ndim() - 1;
  if (inner == 0 || nest_.stride(0, inner) != 1 || nest_.stride(1, inner) == 1) return;
  for (size_t d = 0; d < inner; ++d) {
    if (nest_.stride(1, d) == 1 && nest_.size(d) > 1) across_ = d;
  }
}

// Unit strides in different dimensions: a (batched) transpose.
template <class T>
void StridedCopy::transpose(T* target, const T* source) const {
  const size_t inner = nest_.ndim() - 1, other = across_;
  int64_t batches = 1;
  for (size_t d = 0; d < inner; ++d) batches *= d == other ? 1 : nest_.size(d);
  const int64_t rows = nest_.size(other), columns = nest_.size(inner);
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, rows * columns));
  const auto copy_rows = [&](int64_t batch, int64_t begin, int64_t end) {
    int64_t to = begin * nest_.stride(0, other), from = begin;
    for (size_t d = inner; d-- > 0;) {
      if (d == other) continue;
      const int64_t index = batch % nest_.size(d);
      batch /= nest_.size(d);
      to += index * nest_.stride(0, d);
      from += index * nest_.stride(1, d);
    }
    copy_transposed(target + to, source + from, end - begin, columns, nest_.stride(0, other), nest_.stride(1, inner));
  };
  if (batches > 1) {
    parallel_for(batches, grain, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) copy_rows(b, 0, rows);
    });
  } else {
    parallel_for(rows, std::max<int64_t>(16, 16384 / std::max<int64_t>(1, columns)),
                 [&](int64_t begin, int64_t end) { copy_rows(0, begin, end); });
  }
}

template <class T>
void StridedCopy::run_as(T* target, const T* source) const {
  if (across_ + 1 < nest_.ndim()) return transpose(target, source);
  nest_.parallel_rows(16384,
                      [&](const std::array<int64_t, 2>& offset, int64_t count, const std::array<int64_t, 2>& step) {
                        T* to = target + offset[0];
                        const T* from = source + offset[1];
                        if (step[0] == 1 && step[1] == 1) {
                          copy_row(to, from, count);
                        } else {
                          for (int64_t i = 0; i < count; ++i) to[i * step[0]] = from[i * step[1]];
                        }
                      });
}

void StridedCopy::run(void* target, const void* source) const {
  if (nest_.numel() == 0) return;
  switch (width_) {
    case 1: return run_as(static_cast<uint8_t*>(target), static_cast<const uint8_t*>(source));
    case 2: return run_as(static_cast<uint16_t*>(target), static_cast<const uint16_t*>(source));
    case 4: return run_as(static_cast<uint32_t*>(target), static_cast<const uint32_t*>(source));
    case 8: return run_as(static_cast<uint64_t*>(target), static_cast<const uint64_t*>(source));
    default: return run_as(static_cast<Complex128*>(target), static_cast<const Complex128*>(source));
  }
}

void strided_copy(const Tensor& target, const Tensor& source) {
  if (target.numel() == 0) return;
  if (target.dtype() == source.dtype()) {
    dispatch_any(target.dtype(), "copy", []<class T>() {});  // refuses types that no tensor has
    return StridedCopy(target, source).run(target.raw_data(), source.raw_data());
  }
  dispatch_any(target.dtype(), "copy", [&]<class To>() {
    dispatch_any(source.dtype(), "copy", [&]<class From>() { copy_loop<To, From>(target, source); });
  });
}

}  // namespace tensord
