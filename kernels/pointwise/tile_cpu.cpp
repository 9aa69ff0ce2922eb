// Conversion of tiles between stored dtypes and compute types.
#include <limits>
#include <type_traits>

#include "kernels/pointwise/pointwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pointwise/tile_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Without AVX2, Highway's conversion to half precision truncates instead of rounding, and has no infinities.
constexpr bool kHasHalf = !HWY_ARCH_X86 || HWY_TARGET <= HWY_AVX2;

template <class To, class From>
struct Convert {
  static inline __attribute__((always_inline)) To one(From value) {
    if constexpr (std::is_same_v<To, bool>) {
      return value != From(0);
    } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
      return To(static_cast<float>(value));
    } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
      return Convert<To, float>::one(static_cast<float>(value));
    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
      // By way of int64, as in PyTorch; a number that does not fit becomes the smallest int64.
      const bool fits = value >= From(-9.2233720368547758e18) && value < From(9.2233720368547758e18);
      return static_cast<To>(fits ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::min());
    } else {
      return static_cast<To>(value);
    }
  }
};

template <class From, class To>
void load_dense(const From* source, To* to, int64_t count) {
  int64_t i = 0;
  if constexpr (kHasHalf && std::is_same_v<From, Half> && std::is_same_v<To, float>) {
    const hn::ScalableTag<float> df;
    const hn::Rebind<hwy::float16_t, decltype(df)> dh;
    const auto lanes = static_cast<int64_t>(hn::Lanes(df));
    for (; i + lanes <= count; i += lanes) {
      const auto half = hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(source + i));
      hn::StoreU(hn::PromoteTo(df, half), df, to + i);
    }
  }
  for (; i < count; ++i) to[i] = Convert<To, From>::one(source[i]);
}
template <class From, class To>
void store_dense(const From* from, To* target, int64_t count) {
  int64_t i = 0;
  if constexpr (kHasHalf && std::is_same_v<From, float> && std::is_same_v<To, Half>) {
    const hn::ScalableTag<float> df;
    const hn::Rebind<hwy::float16_t, decltype(df)> dh;
    const auto lanes = static_cast<int64_t>(hn::Lanes(df));
    for (; i + lanes <= count; i += lanes) {
      const auto half = hn::DemoteTo(dh, hn::LoadU(df, from + i));
      hn::StoreU(half, dh, reinterpret_cast<hwy::float16_t*>(target + i));
    }
  }
  for (; i < count; ++i) target[i] = Convert<To, From>::one(from[i]);
}

struct Loader {
  const void* source;
  int64_t step;
  void* to;
  int64_t count;
  template <class From, class To>
  void run() const {
    const From* from = static_cast<const From*>(source);
    To* target = static_cast<To*>(to);
    if (step == 1) return load_dense(from, target, count);
    // Local copies, which the compiler knows no store changes.
    const int64_t n = count, stride = step;
    if (step == 0) {
      const To value = Convert<To, From>::one(*from);
      for (int64_t i = 0; i < n; ++i) target[i] = value;
      return;
    }
    for (int64_t i = 0; i < n; ++i) target[i] = Convert<To, From>::one(from[i * stride]);
  }
};

struct Storer {
  const void* from;
  void* target;
  int64_t step;
  int64_t count;
  template <class To, class From>
  void run() const {
    const From* source = static_cast<const From*>(from);
    To* to = static_cast<To*>(target);
    if (step == 1) return store_dense(source, to, count);
    const int64_t n = count, stride = step;
    for (int64_t i = 0; i < n; ++i) to[i * stride] = Convert<To, From>::one(source[i]);
  }
};

template <class Compute, class Action>
void with_stored(DType stored, const Action& action) {
  switch (stored) {
#define TENSORD_CASE(TYPE, ENUM) \
  case DType::ENUM: return action.template run<TYPE, Compute>();
    TENSORD_FOR_EACH_DTYPE(TENSORD_CASE)
#undef TENSORD_CASE
    default: fail_dtype("pointwise", stored);
  }
}
template <class Action>
void with_both(DType stored, DType compute, const Action& action) {
  switch (compute) {
    case DType::kFloat32: return with_stored<float>(stored, action);
    case DType::kFloat64: return with_stored<double>(stored, action);
    case DType::kInt64: return with_stored<int64_t>(stored, action);
    default: return with_stored<bool>(stored, action);
  }
}

void load(DType from, const void* source, int64_t step, DType compute, void* to, int64_t count) {
  with_both(from, compute, Loader{source, step, to, count});
}
void store(DType compute, const void* from, DType to, void* target, int64_t step, int64_t count) {
  with_both(to, compute, Storer{from, target, step, count});
}

}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {
HWY_EXPORT(load);
HWY_EXPORT(store);

void load_tile(DType from, const void* source, int64_t step, DType compute, void* to, int64_t count) {
  HWY_DYNAMIC_DISPATCH(load)(from, source, step, compute, to, count);
}
void store_tile(DType compute, const void* from, DType to, void* target, int64_t step, int64_t count) {
  HWY_DYNAMIC_DISPATCH(store)(compute, from, to, target, step, count);
}

}  // namespace tensord::kernels
#endif
