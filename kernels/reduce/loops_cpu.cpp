// Inner loops of the reductions, for each instruction set.
#include <array>

#include "kernels/base/math.h"
#include "kernels/reduce/reduce.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/loops_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {

template <class T>
using AccumulatorType = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
template <class T>
inline __attribute__((always_inline)) AccumulatorType<T>& get(Accumulator& accumulator) {
  if constexpr (std::is_integral_v<T>)
    return accumulator.integer;
  else
    return accumulator.value;
}

// Short enough that summing a block in float has a small error.
constexpr int64_t kBlock = 1024;

// Sums of mapped elements.
template <class Map>
struct SumLoops {
  template <class T>
  static void row(const void* data, int64_t count, double center, double power, Accumulator* out) {
    const T* in = static_cast<const T*>(data);
    const T c = static_cast<T>(center), p = static_cast<T>(power);
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int64_t end = begin + kBlock < count ? begin + kBlock : count;
      T sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = begin; i < end; ++i) sum += Map::map(in[i], c, p);
      get<T>(*out) += static_cast<AccumulatorType<T>>(sum);
    }
  }
  template <class T>
  static void columns(const void* data, int64_t rows, int64_t row_step, int64_t count, const double* centers,
                      double power, Accumulator* out) {
    const T* in = static_cast<const T*>(data);
    const T p = static_cast<T>(power);
    int64_t r = 0;
    // Four rows at a time: the accumulators are read and written a quarter as often.
    for (; centers == nullptr && r + 4 <= rows; r += 4, in += 4 * row_step) {
      const T *a = in, *b = in + row_step, *c = in + 2 * row_step, *d = in + 3 * row_step;
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) {
        const T sum =
            (Map::map(a[i], T(0), p) + Map::map(b[i], T(0), p)) + (Map::map(c[i], T(0), p) + Map::map(d[i], T(0), p));
        get<T>(out[i]) += static_cast<AccumulatorType<T>>(sum);
      }
    }
    for (; r < rows; ++r, in += row_step) {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) {
        const T center = centers == nullptr ? T(0) : static_cast<T>(centers[i]);
        get<T>(out[i]) += static_cast<AccumulatorType<T>>(Map::map(in[i], center, p));
      }
    }
  }
};
#define TENSORD_MAP(NAME, ...)                                                                                 \
  struct NAME {                                                                                                \
    template <class T>                                                                                         \
    static inline __attribute__((always_inline)) T map(T x, [[maybe_unused]] T center, [[maybe_unused]] T p) { \
      return __VA_ARGS__;                                                                                      \
    }                                                                                                          \
  };
TENSORD_MAP(Plain, x)
TENSORD_MAP(Square, (x - center) * (x - center))
TENSORD_MAP(Absolute, formula::abs(x))
TENSORD_MAP(Power, formula::pow(formula::abs(x), p))
TENSORD_MAP(Nonzero, x != T(0) ? T(1) : T(0))
#undef TENSORD_MAP

struct ProductLoops {
  template <class T>
  static void row(const void* data, int64_t count, double, double, Accumulator* out) {
    const T* in = static_cast<const T*>(data);
    AccumulatorType<T> product = 1;
#pragma omp simd reduction(* : product)
    for (int64_t i = 0; i < count; ++i) product *= static_cast<AccumulatorType<T>>(in[i]);
    get<T>(*out) *= product;
  }
  template <class T>
  static void columns(const void* data, int64_t rows, int64_t row_step, int64_t count, const double*, double,
                      Accumulator* out) {
    const T* in = static_cast<const T*>(data);
    for (int64_t r = 0; r < rows; ++r, in += row_step) {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) get<T>(out[i]) *= static_cast<AccumulatorType<T>>(in[i]);
    }
  }
};

// The largest of sign * map(x); NaN wins and stays.
template <class Map, bool kIsMax>
struct ExtremeLoops {
  template <class A>
  static inline __attribute__((always_inline)) A pick(A best, A x) {
    if constexpr (kIsMax)
      return x > best || x != x ? x : best;
    else
      return x < best || x != x ? x : best;
  }
  template <class T>
  static void row(const void* data, int64_t count, double, double, Accumulator* out) {
    const T* in = static_cast<const T*>(data);
    if (count == 0) return;
    T best = Map::map(in[0], T(0), T(0));
    int has_nan = 0;
    if constexpr (kIsMax) {
#pragma omp simd reduction(max : best) reduction(| : has_nan)
      for (int64_t i = 0; i < count; ++i) {
        const T x = Map::map(in[i], T(0), T(0));
        best = x > best ? x : best;
        has_nan |= x != x;
      }
    } else {
#pragma omp simd reduction(min : best) reduction(| : has_nan)
      for (int64_t i = 0; i < count; ++i) {
        const T x = Map::map(in[i], T(0), T(0));
        best = x < best ? x : best;
        has_nan |= x != x;
      }
    }
    using A = AccumulatorType<T>;
    if constexpr (!std::is_integral_v<T>) {
      if (has_nan) best = formula::kNaN<T>;
    }
    A& result = get<T>(*out);
    result = result != result ? result : pick<A>(result, static_cast<A>(best));
  }
  template <class T>
  static void columns(const void* data, int64_t rows, int64_t row_step, int64_t count, const double*, double,
                      Accumulator* out) {
    const T* in = static_cast<const T*>(data);
    using A = AccumulatorType<T>;
    for (int64_t r = 0; r < rows; ++r, in += row_step) {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) {
        const A x = static_cast<A>(Map::map(in[i], T(0), T(0)));
        const A old = get<T>(out[i]);
        const A best = pick<A>(old, x);
        get<T>(out[i]) = old != old ? old : best;
      }
    }
  }
};

using Table = std::array<std::array<ReduceLoops, 3>, static_cast<size_t>(Reducer::kCount)>;

Accumulator floating(double value) {
  Accumulator a;
  a.value = value;
  return a;
}
Accumulator integer(int64_t value) {
  Accumulator a;
  a.integer = value;
  return a;
}

template <class Loops>
void put(Table& table, Reducer reducer, double start, int64_t integer_start) {
  auto& entry = table[static_cast<size_t>(reducer)];
  entry[0] = {&Loops::template row<float>, &Loops::template columns<float>, floating(start)};
  entry[1] = {&Loops::template row<double>, &Loops::template columns<double>, floating(start)};
  entry[2] = {&Loops::template row<int64_t>, &Loops::template columns<int64_t>, integer(integer_start)};
}

void fill_reduce_table(Table* target) {
  Table& table = *target;
  constexpr double kInf = formula::kInfinity<double>;
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min(), kHigh = std::numeric_limits<int64_t>::max();
  put<SumLoops<Plain>>(table, Reducer::kSum, 0, 0);
  put<SumLoops<Square>>(table, Reducer::kSquares, 0, 0);
  put<SumLoops<Absolute>>(table, Reducer::kAbsolutes, 0, 0);
  put<SumLoops<Power>>(table, Reducer::kPowers, 0, 0);
  put<SumLoops<Nonzero>>(table, Reducer::kNonzeros, 0, 0);
  put<ProductLoops>(table, Reducer::kProduct, 1, 1);
  put<ExtremeLoops<Plain, true>>(table, Reducer::kMax, -kInf, kLow);
  put<ExtremeLoops<Plain, false>>(table, Reducer::kMin, kInf, kHigh);
  put<ExtremeLoops<Absolute, true>>(table, Reducer::kMaxAbsolute, 0, 0);
  put<ExtremeLoops<Absolute, false>>(table, Reducer::kMinAbsolute, kInf, kHigh);
  put<ExtremeLoops<Nonzero, true>>(table, Reducer::kAny, 0, 0);
  put<ExtremeLoops<Nonzero, false>>(table, Reducer::kAll, 1, 1);
}

}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {
using LoopTable = std::array<std::array<ReduceLoops, 3>, static_cast<size_t>(Reducer::kCount)>;
HWY_EXPORT(fill_reduce_table);

const ReduceLoops& reduce_loops(Reducer reducer, DType loop) {
  static const LoopTable table = [] {
    LoopTable out;
    HWY_DYNAMIC_DISPATCH(fill_reduce_table)(&out);
    return out;
  }();
  return table[static_cast<size_t>(reducer)][loop == DType::kFloat32 ? 0 : loop == DType::kFloat64 ? 1 : 2];
}

}  // namespace tensord::kernels
#endif
