// Included inside HWY_NAMESPACE by vector code: bounds that propagate NaN. The results of Highway's Min and Max for a
// NaN depend on the instruction set: x86's instructions return their second operand, the baseline the other number.

template <class AnyV>
HWY_INLINE AnyV at_least(AnyV x, AnyV low) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  return hwy::HWY_NAMESPACE::IfThenElse(hwy::HWY_NAMESPACE::Lt(x, low), low, x);
#else
  return hwy::HWY_NAMESPACE::Max(low, x);
#endif
}

template <class AnyV>
HWY_INLINE AnyV at_most(AnyV x, AnyV high) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  return hwy::HWY_NAMESPACE::IfThenElse(hwy::HWY_NAMESPACE::Lt(high, x), high, x);
#else
  return hwy::HWY_NAMESPACE::Min(high, x);
#endif
}
