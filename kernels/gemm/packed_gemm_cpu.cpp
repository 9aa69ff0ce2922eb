// Tiles of matrix products with packed weights, compiled for every instruction set and chosen at run time.
#include "kernels/gemm/packed_gemm_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/packed_gemm_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using DW = hn::ScalableTag<uint32_t>;
using DF = hn::ScalableTag<float>;
using DI = hn::ScalableTag<int32_t>;
constexpr bool kManyRegisters = HWY_CAP_GE512 || HWY_ARCH_ARM_A64;

struct FloatSums {
  using Sum = hn::Vec<DF>;
  static HWY_INLINE Sum zero() { return hn::Zero(DF()); }
  static HWY_INLINE Sum sum(Sum a, Sum b) { return hn::Add(a, b); }
  static HWY_INLINE Sum load(const uint32_t* c) { return hn::Load(DF(), reinterpret_cast<const float*>(c)); }
  static HWY_INLINE void store(Sum s, uint32_t* c) { hn::Store(s, DF(), reinterpret_cast<float*>(c)); }
};
struct IntSums {
  using Sum = hn::Vec<DI>;
  static HWY_INLINE Sum zero() { return hn::Zero(DI()); }
  static HWY_INLINE Sum sum(Sum a, Sum b) { return hn::Add(a, b); }
  static HWY_INLINE Sum load(const uint32_t* c) { return hn::Load(DI(), reinterpret_cast<const int32_t*>(c)); }
  static HWY_INLINE void store(Sum s, uint32_t* c) { hn::Store(s, DI(), reinterpret_cast<int32_t*>(c)); }
};

struct F32Math : FloatSums {
  using Operand = hn::Vec<DF>;
  static constexpr int kParts = 1;
  static HWY_INLINE Operand right(const uint32_t* b, int) { return hn::Load(DF(), reinterpret_cast<const float*>(b)); }
  static HWY_INLINE Operand left(const uint32_t& a, int) { return hn::Set(DF(), reinterpret_cast<const float&>(a)); }
  static HWY_INLINE Sum add(Sum s, Operand a, Operand b) { return hn::MulAdd(a, b, s); }
};

// bf16 converted to f32: the lower and the upper half of each word.
struct Bf16Math : FloatSums {
  using Operand = hn::Vec<DF>;
  static constexpr int kParts = 2;
  static HWY_INLINE Operand half(hn::Vec<DW> words, int part) {
    return hn::BitCast(DF(), part == 0 ? hn::ShiftLeft<16>(words) : hn::And(words, hn::Set(DW(), 0xffff0000u)));
  }
  static HWY_INLINE Operand right(const uint32_t* b, int part) { return half(hn::Load(DW(), b), part); }
  static HWY_INLINE Operand left(const uint32_t& a, int part) { return half(hn::Set(DW(), a), part); }
  static HWY_INLINE Sum add(Sum s, Operand a, Operand b) { return hn::MulAdd(a, b, s); }
};

// Only F16C's conversions treat every number as IEEE does; Highway's own do not.
#if HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
// The same for float16. A vector of words on the right holds its first numbers, then its second ones.
struct F16Math : FloatSums {
  using Operand = hn::Vec<DF>;
  using Halves = hn::Rebind<hwy::float16_t, DF>;
  static constexpr int kParts = 2;
  static HWY_INLINE Operand right(const uint32_t* b, int part) {
    const auto* halves = reinterpret_cast<const hwy::float16_t*>(b) + part * static_cast<int>(hn::MaxLanes(DF()));
    return hn::PromoteTo(DF(), hn::LoadU(Halves(), halves));
  }
  static HWY_INLINE Operand left(const uint32_t& a, int part) {
    const auto bits = static_cast<uint16_t>(part == 0 ? a & 0xffffu : a >> 16);
    return hn::PromoteTo(DF(), hn::BitCast(Halves(), hn::Set(hn::Rebind<uint16_t, DF>(), bits)));
  }
  static HWY_INLINE Sum add(Sum s, Operand a, Operand b) { return hn::MulAdd(a, b, s); }
};
#endif

#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
// 8-bit numbers extended to 16 bits: the even and the odd bytes of each word.
struct Int8Math : IntSums {
  using DH = hn::Repartition<int16_t, DI>;
  using Operand = hn::Vec<DH>;
  static constexpr int kParts = 2;
  static HWY_INLINE Operand right(const uint32_t* b, int part) {
    const auto pairs = hn::BitCast(DH(), hn::Load(DW(), b));
    return hn::ShiftRight<8>(part == 0 ? hn::ShiftLeft<8>(pairs) : pairs);
  }
  static HWY_INLINE Operand left(const uint32_t& a, int part) {
    return hn::BitCast(DH(), hn::Set(DW(), (part == 0 ? a : a >> 8) & 0x00ff00ffu));
  }
  static HWY_INLINE Sum add(Sum s, Operand a, Operand b) {
    auto unused = hn::Zero(DI());
    return hn::ReorderWidenMulAccumulate(DI(), a, b, s, unused);
  }
};
#else
// 8-bit numbers extended to 32 bits, one byte of each word at a time.
struct Int8Math : IntSums {
  using Operand = hn::Vec<DI>;
  static constexpr int kParts = 4;
  static HWY_INLINE Operand right(const uint32_t* b, int part) {
    const auto words = hn::BitCast(DI(), hn::Load(DW(), b));
    return hn::ShiftRight<24>(hn::ShiftLeftSame(words, 24 - 8 * part));
  }
  static HWY_INLINE Operand left(const uint32_t& a, int part) {
    return hn::Set(DI(), static_cast<int32_t>((a >> (8 * part)) & 0xffu));
  }
  static HWY_INLINE Sum add(Sum s, Operand a, Operand b) { return hn::Add(s, hn::Mul(a, b)); }
};
#endif

#include "kernels/gemm/packed_gemm_kernel-inl.h"

}  // namespace
}  // namespace tensord::kernels::HWY_NAMESPACE

#if HWY_TARGET == HWY_AVX3
// Processors with AVX-512 that also multiply bf16 and 8-bit numbers, for all of which Highway has no target. The
// functions that Highway chooses ask for this, since hwy::SupportedTargets() would undo TENSORD_MAX_ISA.
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512bf16,avx512vnni")
namespace tensord::kernels::HWY_NAMESPACE::dot {
namespace {

struct DotMath : FloatSums {
  using Operand = __m512bh;
  static constexpr int kParts = 1;
  static HWY_INLINE Operand right(const uint32_t* b, int) { return reinterpret_cast<__m512bh>(_mm512_load_si512(b)); }
  static HWY_INLINE Operand left(const uint32_t& a, int) {
    return reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(a)));
  }
  static HWY_INLINE Sum add(Sum s, Operand a, Operand b) { return Sum{_mm512_dpbf16_ps(s.raw, a, b)}; }
};

struct VnniMath : IntSums {
  using Operand = __m512i;
  static constexpr int kParts = 1;
  static HWY_INLINE Operand right(const uint32_t* b, int) { return _mm512_load_si512(b); }
  static HWY_INLINE Operand left(const uint32_t& a, int) { return _mm512_set1_epi32(static_cast<int>(a)); }
  static HWY_INLINE Sum add(Sum s, Operand a, Operand b) { return Sum{_mm512_dpbusd_epi32(s.raw, a, b)}; }
};

#include "kernels/gemm/packed_gemm_kernel-inl.h"

}  // namespace

void fill_bf16(TileKernels* kernels) { fill<DotMath>(*kernels, "bf16 vdpbf16ps"); }
void fill_int8(TileKernels* kernels) { fill<VnniMath>(*kernels, "int8 vpdpbusd"); }

}  // namespace tensord::kernels::HWY_NAMESPACE::dot
HWY_POP_ATTRIBUTES
#endif

namespace tensord::kernels::HWY_NAMESPACE {

void fill_f32(TileKernels* kernels) { fill<F32Math>(*kernels, "f32"); }

void fill_bf16(TileKernels* kernels) {
#if HWY_TARGET == HWY_AVX3
  if (__builtin_cpu_supports("avx512bf16")) return dot::fill_bf16(kernels);
#endif
  fill<Bf16Math>(*kernels, "bf16 widened");
  kernels->widens = true;
}

void fill_f16(TileKernels* kernels) {
#if HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
  fill<F16Math>(*kernels, "f16 widened");
  kernels->widens = true;
#else
  kernels->lanes = 0;
#endif
}

template <class Math>
void WidenPanel(const uint32_t* panel, int64_t words, int64_t width, float* out) {
  constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(DW()));
  for (int64_t i = 0; i < words; ++i) {
    for (int part = 0; part < Math::kParts; ++part, out += width) {
      for (int64_t column = 0; column < width; column += kLanes)
        hn::Store(Math::right(panel + i * width + column, part), DF(), out + column);
    }
  }
}

void widen(WordType type, const uint32_t* panel, int64_t words, int64_t width, float* out) {
#if HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
  if (type == WordType::kF16) return WidenPanel<F16Math>(panel, words, width, out);
#endif
  (void)type;
  WidenPanel<Bf16Math>(panel, words, width, out);
}

void fill_int8(TileKernels* kernels) {
#if HWY_TARGET == HWY_AVX3
  if (__builtin_cpu_supports("avx512vnni")) return dot::fill_int8(kernels);
#endif
  fill<Int8Math>(*kernels, "int8 widened");
}

}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(fill_f32);
HWY_EXPORT(fill_bf16);
HWY_EXPORT(fill_f16);
HWY_EXPORT(fill_int8);
HWY_EXPORT(widen);

WordType word_type(ops::Precision precision) {
  switch (precision) {
    case ops::Precision::kF32: return WordType::kF32;
    case ops::Precision::kBf16: return WordType::kBf16;
    case ops::Precision::kInt8: return WordType::kInt8;
  }
  return WordType::kF32;
}

TileKernels tile_kernels(WordType type) {
  TileKernels kernels;
  switch (type) {
    case WordType::kF32: HWY_DYNAMIC_DISPATCH(fill_f32)(&kernels); break;
    case WordType::kBf16: HWY_DYNAMIC_DISPATCH(fill_bf16)(&kernels); break;
    case WordType::kF16: HWY_DYNAMIC_DISPATCH(fill_f16)(&kernels); break;
    case WordType::kInt8: HWY_DYNAMIC_DISPATCH(fill_int8)(&kernels); break;
  }
  return kernels;
}

void widen_panel(WordType type, const uint32_t* panel, int64_t words, int64_t width, float* out) {
  HWY_DYNAMIC_DISPATCH(widen)(type, panel, words, width, out);
}

}  // namespace tensord::kernels
#endif
