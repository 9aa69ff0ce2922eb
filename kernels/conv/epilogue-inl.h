// Included inside HWY_NAMESPACE by the convolutions' vector code: epilogues of results in registers.

#include "kernels/base/bounds-inl.h"

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));

// 2^f for f from 0 to 1, within 1e-7 of itself.
HWY_INLINE V power_of_part(V f) {
  const D d;
  V p = hn::Set(d, 1.8775767e-3f);
  p = hn::MulAdd(p, f, hn::Set(d, 8.9893397e-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 5.5826318e-2f));
  p = hn::MulAdd(p, f, hn::Set(d, 2.4015361e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 6.9315308e-1f));
  return hn::MulAdd(p, f, hn::Set(d, 9.9999994e-1f));
}

// 1 / (1 + exp(-x)) for x from -80 on, within 3e-7 of itself. The bounds keep the power finite.
HWY_INLINE V bounded_sigmoid(V x) {
  const D d;
  const V one = hn::Set(d, 1.0f), by = hn::Set(d, -1.44269504f);
#if HWY_TARGET == HWY_AVX3
  // One instruction each for the part above the whole number, for the scaling by its power, and for the
  // reciprocal to 14 bits, which one step of Newton's makes exact.
  const V y = hn::Mul(at_least(x, hn::Set(d, -80.0f)), by);
  constexpr int kDown = 9;
  const V power{_mm512_scalef_ps(power_of_part(V{_mm512_reduce_ps(y.raw, kDown)}).raw, y.raw)};
  const V divisor = hn::Add(one, power), guess = hn::ApproximateReciprocal(divisor);
  return hn::Mul(guess, hn::NegMulAdd(divisor, guess, hn::Set(d, 2.0f)));
#else
  const hn::RebindToSigned<D> di;
  const V y = hn::Mul(at_most(at_least(x, hn::Set(d, -80.0f)), hn::Set(d, 80.0f)), by), whole = hn::Floor(y);
  // A NaN as an int is any number, which would make a number of the NaN that the power is.
  const auto shift = hn::ShiftLeft<23>(hn::ConvertTo(di, hn::IfThenElseZero(hn::Eq(whole, whole), whole)));
  const V power = hn::BitCast(d, hn::Add(hn::BitCast(di, power_of_part(hn::Sub(y, whole))), shift));
  return hn::Div(one, hn::Add(one, power));
#endif
}

// Below the bound it is 0, so that its product with x stays small.
HWY_INLINE V sigmoid_of(V x) {
  const D d;
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -80.0f)), bounded_sigmoid(x));
}

template <class AnyV>
HWY_INLINE AnyV clamp_of(AnyV x, AnyV low, AnyV high) {
  return at_most(at_least(x, low), high);
}

HWY_INLINE V step_of(const ConvEpilogue::Step& step, V x) {
  using Kind = ConvEpilogue::Kind;
  const D d;
  const V alpha = hn::Set(d, step.alpha), beta = hn::Set(d, step.beta), zero = hn::Zero(d);
  switch (step.kind) {
    case Kind::kLeaky: return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(x, alpha), x);
    case Kind::kClip: return clamp_of(x, alpha, beta);
    case Kind::kLinear: return hn::MulAdd(x, alpha, beta);
    case Kind::kSigmoid: return sigmoid_of(x);
    case Kind::kSilu: return hn::Mul(x, sigmoid_of(x));
    case Kind::kHardSwish: {
      const V gate = hn::MulAdd(x, hn::Set(d, 1.0f / 6), hn::Set(d, 0.5f));
      return hn::Mul(x, clamp_of(gate, zero, hn::Set(d, 1.0f)));
    }
  }
  return x;
}

// The functions after the clamp, over `rows` lines of `count` floats.
template <class Step>
HWY_INLINE void finish_lines(const Step& step, float* p, int64_t rows, int64_t row_step, int64_t count) {
  const D d;
  for (int64_t r = 0; r < rows; ++r, p += row_step) {
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) hn::StoreU(step(hn::LoadU(d, p + i)), d, p + i);
    if (i == count) continue;
    HWY_ALIGN float rest[kLanes] = {};
    const size_t bytes = static_cast<size_t>(count - i) * sizeof(float);
    std::memcpy(rest, p + i, bytes);
    hn::Store(step(hn::Load(d, rest)), d, rest);
    std::memcpy(p + i, rest, bytes);
  }
}

HWY_NOINLINE void finish_block(const ConvEpilogue& finish, float* p, int64_t rows, int64_t row_step, int64_t count) {
  for (int s = 0; s < finish.count; ++s) {
    const ConvEpilogue::Step step = finish.steps[static_cast<size_t>(s)];
    if (step.kind == ConvEpilogue::Kind::kSilu)
      finish_lines([](V x) HWY_ATTR { return hn::Mul(x, sigmoid_of(x)); }, p, rows, row_step, count);
    else
      finish_lines([&](V x) HWY_ATTR { return step_of(step, x); }, p, rows, row_step, count);
  }
}
