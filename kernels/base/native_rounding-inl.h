// Included inside HWY_NAMESPACE, after bfloat16-inl.h, where attributes allow avx512bf16.

// As IntegerRounding. The processor's instruction takes numbers below float32's normal ones as zero; those are rounded
// with integers.
struct NativeRounding {
  using Vec = IntegerRounding::Vec;

  static HWY_INLINE __m256i narrow(Vec x) {
    constexpr int kDenormal = 0x20;
    if (HWY_UNLIKELY(_mm512_fpclass_ps_mask(x.raw, kDenormal) != 0)) return IntegerRounding::narrow(x).raw;
    return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x.raw));
  }
  static HWY_INLINE Vec rounded(Vec x) {
    return Vec{_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(narrow(x)), 16))};
  }
  static HWY_INLINE void store(Vec x, BFloat16* to) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), narrow(x)); }
};
