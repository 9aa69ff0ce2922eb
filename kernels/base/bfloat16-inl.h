// Included inside HWY_NAMESPACE by vector code: bfloat16 in registers, widened to float32.
using Halves = hn::Rebind<uint16_t, hn::ScalableTag<float>>;

HWY_INLINE hn::Vec<hn::ScalableTag<float>> load_wide(const BFloat16* at) {
  const hn::ScalableTag<float> d;
  const auto bits = hn::LoadU(Halves(), reinterpret_cast<const uint16_t*>(at));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<decltype(d)>(), bits)));
}

// Rounds float32 to bfloat16: to nearest, ties to even; NaN stays NaN.
struct IntegerRounding {
  using D = hn::ScalableTag<float>;
  using Vec = hn::Vec<D>;
  using Words = hn::RebindToUnsigned<D>;

  static HWY_INLINE hn::Vec<Words> nearest(Vec x) {
    const Words d;
    const auto bits = hn::BitCast(d, x);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1u));
    const auto sum = hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7fffu)));
    return hn::IfThenElse(hn::RebindMask(d, hn::Ne(x, x)), hn::Or(bits, hn::Set(d, 0x400000u)), sum);
  }
  static HWY_INLINE Vec rounded(Vec x) { return hn::BitCast(D(), hn::And(nearest(x), hn::Set(Words(), 0xffff0000u))); }
  static HWY_INLINE hn::Vec<Halves> narrow(Vec x) {
    const hn::RebindToSigned<Words> d;
    return hn::DemoteTo(Halves(), hn::BitCast(d, hn::ShiftRight<16>(nearest(x))));
  }
  static HWY_INLINE void store(Vec x, BFloat16* to) {
    hn::StoreU(narrow(x), Halves(), reinterpret_cast<uint16_t*>(to));
  }
};
