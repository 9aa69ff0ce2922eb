// Transposes f32 matrices, compiled for each instruction set: one block of lines at a time that stays in the L1 cache,
// and within it squares of 4 by 4 in registers.
#include "kernels/gemm/transpose.h"

#include <algorithm>

#include "core/base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/transpose_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

void Plain(const float* from, int64_t from_step, int64_t rows, int64_t columns, float* to, int64_t to_step) {
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) to[c * to_step + r] = from[r * from_step + c];
  }
}

#if HWY_TARGET != HWY_SCALAR
constexpr int64_t kSquare = 4;

HWY_INLINE void Square(const float* from, int64_t from_step, float* to, int64_t to_step) {
  const hn::FixedTag<float, kSquare> d;
  const hn::Repartition<uint64_t, decltype(d)> d2;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_step), c = hn::LoadU(d, from + 2 * from_step),
             e = hn::LoadU(d, from + 3 * from_step);
  const auto ab0 = hn::BitCast(d2, hn::InterleaveLower(d, a, b)), ab1 = hn::BitCast(d2, hn::InterleaveUpper(d, a, b)),
             ce0 = hn::BitCast(d2, hn::InterleaveLower(d, c, e)), ce1 = hn::BitCast(d2, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, ab0, ce0)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, ab0, ce0)), d, to + to_step);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, ab1, ce1)), d, to + 2 * to_step);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, ab1, ce1)), d, to + 3 * to_step);
}
#endif

}  // namespace

void TransposeFloats(const float* from, int64_t from_step, int64_t rows, int64_t columns, float* to, int64_t to_step) {
#if HWY_TARGET == HWY_SCALAR
  Plain(from, from_step, rows, columns, to, to_step);
#else
  // Writes whole lines of the result, 16 numbers at a time.
  constexpr int64_t kLine = 16;
  const int64_t whole = columns / kSquare * kSquare;
  for (int64_t r = 0; r < rows; r += kLine) {
    const int64_t count = std::min(kLine, rows - r), squares = count / kSquare * kSquare;
    const float* source = from + r * from_step;
    for (int64_t c = 0; c < whole; c += kSquare) {
      for (int64_t i = 0; i < squares; i += kSquare)
        Square(source + i * from_step + c, from_step, to + c * to_step + r + i, to_step);
    }
    Plain(source + squares * from_step, from_step, count - squares, whole, to + r + squares, to_step);
    Plain(source + whole, from_step, count, columns - whole, to + whole * to_step + r, to_step);
  }
#endif
}

}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(TransposeFloats);

void transpose_floats(const float* from, int64_t from_step, int64_t rows, int64_t columns, float* to, int64_t to_step) {
  HWY_DYNAMIC_DISPATCH(TransposeFloats)(from, from_step, rows, columns, to, to_step);
}

namespace {

// Transposes each image from [rows][columns] to [columns][rows]; threads share images and columns.
void transpose_images(const float* from, int64_t batch, int64_t rows, int64_t columns, float* to) {
  constexpr int64_t kColumns = 64;
  constexpr double kNsPerFloat = 0.4;
  const int64_t blocks = (columns + kColumns - 1) / kColumns;
  parallel_for_cost(batch * blocks, kNsPerFloat * static_cast<double>(rows * kColumns),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        const int64_t image = i / blocks * rows * columns, first = i % blocks * kColumns;
                        transpose_floats(from + image + first, columns, rows, std::min(kColumns, columns - first),
                                         to + image + first * rows, rows);
                      }
                    });
}

}  // namespace

void planes_to_pixels(const float* from, int64_t batch, int64_t channels, int64_t pixels, float* to) {
  transpose_images(from, batch, channels, pixels, to);
}
void pixels_to_planes(const float* from, int64_t batch, int64_t channels, int64_t pixels, float* to) {
  transpose_images(from, batch, pixels, channels, to);
}

}  // namespace tensord::kernels
#endif
