// Included inside HWY_NAMESPACE by half_epilogue_cpu.cpp, once for each way of rounding.

// A step of scale and shift: absent, one pair for all elements, or one pair for each.
enum class Affine : uint8_t { kNone, kOne, kRow };

template <class Rounding, Affine affine, bool has_other>
void run_row(const float* from, const HalfEpilogue& steps, const BFloat16* other, BFloat16* to, int64_t count) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr bool is_row = affine == Affine::kRow;
  const Vec low = IntegerRounding::rounded(hn::Set(d, steps.low)),
            high = IntegerRounding::rounded(hn::Set(d, steps.high));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    Vec v = hn::LoadU(d, from + i);
    if constexpr (affine != Affine::kNone) {
      const Vec scale = is_row ? hn::LoadU(d, steps.scale + i) : hn::Set(d, *steps.scale);
      const Vec shift = is_row ? hn::LoadU(d, steps.shift + i) : hn::Set(d, *steps.shift);
      v = hn::Add(hn::Mul(Rounding::rounded(v), scale), shift);
    }
    if constexpr (has_other) v = hn::Add(Rounding::rounded(v), load_wide(other + i));
    // The bounds are bfloat16, so rounding after them gives the same number as before them.
    Rounding::store(at_most(at_least(v, low), high), to + i);
  }
  for (; i < count; ++i) {
    float v = rounded(from[i]);
    if constexpr (affine != Affine::kNone) v = rounded(v * steps.scale[is_row ? i : 0] + steps.shift[is_row ? i : 0]);
    if constexpr (has_other) v = rounded(v + static_cast<float>(other[i]));
    to[i] = static_cast<BFloat16>(clamped(v, steps));
  }
}

template <class Rounding>
void finish_bfloat16(const FloatRows& from, const HalfEpilogue& steps, BFloat16* to, int64_t stride) {
  const auto choose = [&](auto affine) {
    constexpr Affine kAffine = affine;
    return steps.other != nullptr ? &run_row<Rounding, kAffine, true> : &run_row<Rounding, kAffine, false>;
  };
  const auto run = steps.scale == nullptr    ? choose(std::integral_constant<Affine, Affine::kNone>())
                   : steps.has_row_of_scales ? choose(std::integral_constant<Affine, Affine::kRow>())
                                             : choose(std::integral_constant<Affine, Affine::kOne>());
  const auto* const other = static_cast<const BFloat16*>(steps.other);
  for (int64_t r = 0; r < from.rows; ++r) {
    run(from.data + r * from.stride, steps, other != nullptr ? other + r * stride : nullptr, to + r * stride,
        from.columns);
  }
}
