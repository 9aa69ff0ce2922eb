// The updates of optimizers, each in one pass over memory; compiled for every instruction set and chosen at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/optim/optim_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/optim/optim.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

#include "kernels/base/bounds-inl.h"

namespace hn = hwy::HWY_NAMESPACE;

// Calls body(d, i) for vectors, and for the remaining elements one by one: the same operations, so that results do not
// depend on where a part begins.
template <class T, class Body>
HWY_INLINE void ForVectors(int64_t count, const Body body) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) body(d, i);
  const hn::CappedTag<T, 1> one;
  for (; i < count; ++i) body(one, i);
}

template <class T>
struct Operands {
  explicit Operands(const OptimSpan& span)
      : param(static_cast<T*>(span.param)),
        grad(static_cast<const T*>(span.grad)),
        state0(static_cast<T*>(span.state[0])),
        state1(static_cast<T*>(span.state[1])),
        state2(static_cast<T*>(span.state[2])) {}
  // The gradient to descend along.
  template <class D, class V>
  HWY_INLINE V Downwards(D d, int64_t i, V param_value, bool maximize, double weight_decay) const {
    V g = hn::LoadU(d, grad + i);
    if (maximize) g = hn::Neg(g);
    if (weight_decay != 0) g = hn::MulAdd(param_value, hn::Set(d, static_cast<T>(weight_decay)), g);
    return g;
  }
  T* param;
  const T* grad;
  T *state0, *state1, *state2;
};

template <class T>
struct SgdBody {
  Operands<T> x;
  SgdNumbers n;
  template <class D>
  HWY_INLINE void operator()(D d, int64_t i) const {
    const auto p = hn::LoadU(d, x.param + i);
    auto g = x.Downwards(d, i, p, n.maximize, n.weight_decay);
    if (x.state0) {
      const auto momentum = hn::Set(d, static_cast<T>(n.momentum));
      auto buffer = g;
      if (!n.is_first) {
        const auto kept = hn::Mul(hn::LoadU(d, x.state0 + i), momentum);
        buffer = hn::MulAdd(g, hn::Set(d, static_cast<T>(1 - n.dampening)), kept);
      }
      hn::StoreU(buffer, d, x.state0 + i);
      g = n.nesterov ? hn::MulAdd(buffer, momentum, g) : buffer;
    }
    hn::StoreU(hn::MulAdd(g, hn::Set(d, static_cast<T>(-n.lr)), p), d, x.param + i);
  }
};

template <class T>
struct AdamBody {
  Operands<T> x;
  AdamNumbers n;
  template <class D>
  HWY_INLINE void operator()(D d, int64_t i) const {
    const auto number = [d](double value) HWY_ATTR { return hn::Set(d, static_cast<T>(value)); };
    auto p = hn::LoadU(d, x.param + i);
    const auto g = x.Downwards(d, i, p, n.maximize, n.weight_decay);
    if (n.shrink != 1) p = hn::Mul(p, number(n.shrink));
    const auto mean = hn::MulAdd(g, number(1 - n.beta1), hn::Mul(hn::LoadU(d, x.state0 + i), number(n.beta1)));
    const auto kept = hn::Mul(hn::LoadU(d, x.state1 + i), number(n.beta2));
    auto squares = hn::MulAdd(hn::Mul(g, number(1 - n.beta2)), g, kept);
    hn::StoreU(mean, d, x.state0 + i);
    hn::StoreU(squares, d, x.state1 + i);
    if (x.state2) {
      squares = at_least(squares, hn::LoadU(d, x.state2 + i));
      hn::StoreU(squares, d, x.state2 + i);
    }
    const auto divisor = hn::MulAdd(hn::Sqrt(squares), number(n.root_factor), number(n.eps));
    hn::StoreU(hn::Add(p, hn::Div(hn::Mul(mean, number(-n.step_size)), divisor)), d, x.param + i);
  }
};

template <class T>
struct RmspropBody {
  Operands<T> x;
  RmspropNumbers n;
  template <class D>
  HWY_INLINE void operator()(D d, int64_t i) const {
    const auto number = [d](double value) HWY_ATTR { return hn::Set(d, static_cast<T>(value)); };
    const auto p = hn::LoadU(d, x.param + i);
    const auto g = x.Downwards(d, i, p, n.maximize, n.weight_decay);
    const auto kept = hn::Mul(hn::LoadU(d, x.state0 + i), number(n.alpha));
    auto squares = hn::MulAdd(hn::Mul(g, number(1 - n.alpha)), g, kept);
    hn::StoreU(squares, d, x.state0 + i);
    if (x.state2) {
      const auto mean = hn::MulAdd(g, number(1 - n.alpha), hn::Mul(hn::LoadU(d, x.state2 + i), number(n.alpha)));
      hn::StoreU(mean, d, x.state2 + i);
      squares = hn::NegMulAdd(mean, mean, squares);
    }
    const auto divisor = hn::Add(hn::Sqrt(squares), number(n.eps));
    if (x.state1) {
      const auto pushed = hn::Mul(hn::LoadU(d, x.state1 + i), number(n.momentum));
      const auto buffer = hn::Add(pushed, hn::Div(g, divisor));
      hn::StoreU(buffer, d, x.state1 + i);
      hn::StoreU(hn::MulAdd(buffer, number(-n.lr), p), d, x.param + i);
    } else {
      hn::StoreU(hn::Add(p, hn::Div(hn::Mul(g, number(-n.lr)), divisor)), d, x.param + i);
    }
  }
};

template <class T>
struct AdagradBody {
  Operands<T> x;
  AdagradNumbers n;
  template <class D>
  HWY_INLINE void operator()(D d, int64_t i) const {
    const auto p = hn::LoadU(d, x.param + i);
    const auto g = x.Downwards(d, i, p, n.maximize, n.weight_decay);
    const auto sum = hn::MulAdd(g, g, hn::LoadU(d, x.state0 + i));
    hn::StoreU(sum, d, x.state0 + i);
    const auto divisor = hn::Add(hn::Sqrt(sum), hn::Set(d, static_cast<T>(n.eps)));
    const auto scaled = hn::Mul(g, hn::Set(d, static_cast<T>(-n.lr)));
    hn::StoreU(hn::Add(p, hn::Div(scaled, divisor)), d, x.param + i);
  }
};

void SgdSpan(const SgdNumbers& n, const OptimSpan& span) {
  if (span.is_double)
    ForVectors<double>(span.count, SgdBody<double>{Operands<double>(span), n});
  else
    ForVectors<float>(span.count, SgdBody<float>{Operands<float>(span), n});
}
void AdamSpan(const AdamNumbers& n, const OptimSpan& span) {
  if (span.is_double)
    ForVectors<double>(span.count, AdamBody<double>{Operands<double>(span), n});
  else
    ForVectors<float>(span.count, AdamBody<float>{Operands<float>(span), n});
}
void RmspropSpan(const RmspropNumbers& n, const OptimSpan& span) {
  if (span.is_double)
    ForVectors<double>(span.count, RmspropBody<double>{Operands<double>(span), n});
  else
    ForVectors<float>(span.count, RmspropBody<float>{Operands<float>(span), n});
}
void AdagradSpan(const AdagradNumbers& n, const OptimSpan& span) {
  if (span.is_double)
    ForVectors<double>(span.count, AdagradBody<double>{Operands<double>(span), n});
  else
    ForVectors<float>(span.count, AdagradBody<float>{Operands<float>(span), n});
}

// The sums of |x| or x², in runs short enough for T, added in double.
template <bool kSquares, class T>
double SumSpan(const T* data, int64_t count) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t kRun = 2048;
  double total = 0;
  int64_t i = 0;
  while (i + 4 * lanes <= count) {
    const int64_t end = std::min(count, i + kRun);
    auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      const auto a = hn::LoadU(d, data + i), b = hn::LoadU(d, data + i + lanes);
      const auto c = hn::LoadU(d, data + i + 2 * lanes), e = hn::LoadU(d, data + i + 3 * lanes);
      if constexpr (kSquares) {
        s0 = hn::MulAdd(a, a, s0), s1 = hn::MulAdd(b, b, s1);
        s2 = hn::MulAdd(c, c, s2), s3 = hn::MulAdd(e, e, s3);
      } else {
        s0 = hn::Add(s0, hn::Abs(a)), s1 = hn::Add(s1, hn::Abs(b));
        s2 = hn::Add(s2, hn::Abs(c)), s3 = hn::Add(s3, hn::Abs(e));
      }
    }
    total += hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  }
  for (; i < count; ++i) {
    const double x = data[i];
    total += kSquares ? x * x : std::abs(x);
  }
  return total;
}

template <class T>
double MaxSpan(const T* data, int64_t count) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto max = hn::Zero(d), nans = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto x = hn::Abs(hn::LoadU(d, data + i));
    max = hn::Max(max, x);
    nans = hn::IfThenElse(hn::IsNaN(x), x, nans);
  }
  if (!hn::AllTrue(d, hn::Eq(nans, hn::Zero(d)))) return std::numeric_limits<double>::quiet_NaN();
  double result = hn::GetLane(hn::MaxOfLanes(d, max));
  for (; i < count; ++i) {
    if (std::isnan(data[i])) return data[i];
    result = std::max(result, static_cast<double>(std::abs(data[i])));
  }
  return result;
}

template <class T>
double Norm(NormKind kind, double power, const T* data, int64_t count) {
  switch (kind) {
    case NormKind::kSum: return SumSpan<false>(data, count);
    case NormKind::kSquares: return SumSpan<true>(data, count);
    case NormKind::kMax: return MaxSpan(data, count);
    case NormKind::kPower: break;
  }
  double total = 0;
  for (int64_t i = 0; i < count; ++i) total += std::pow(std::abs(static_cast<double>(data[i])), power);
  return total;
}
double NormSpan(NormKind kind, double power, bool is_double, const void* data, int64_t count) {
  return is_double ? Norm(kind, power, static_cast<const double*>(data), count)
                   : Norm(kind, power, static_cast<const float*>(data), count);
}

template <class T>
struct ScaleBody {
  T* data;
  T factor;
  template <class D>
  HWY_INLINE void operator()(D d, int64_t i) const {
    hn::StoreU(hn::Mul(hn::LoadU(d, data + i), hn::Set(d, factor)), d, data + i);
  }
};
void ScaleSpan(double factor, bool is_double, void* data, int64_t count) {
  if (is_double)
    ForVectors<double>(count, ScaleBody<double>{static_cast<double*>(data), factor});
  else
    ForVectors<float>(count, ScaleBody<float>{static_cast<float*>(data), static_cast<float>(factor)});
}

template <class T>
struct ClampBody {
  T* data;
  T limit;
  template <class D>
  HWY_INLINE void operator()(D d, int64_t i) const {
    const auto x = hn::LoadU(d, data + i);
    const auto high = hn::Set(d, limit), low = hn::Set(d, -limit);
    const auto at_most = hn::IfThenElse(hn::Gt(x, high), high, x);
    hn::StoreU(hn::IfThenElse(hn::Lt(at_most, low), low, at_most), d, data + i);
  }
};
void ClampSpan(double limit, bool is_double, void* data, int64_t count) {
  if (is_double)
    ForVectors<double>(count, ClampBody<double>{static_cast<double*>(data), limit});
  else
    ForVectors<float>(count, ClampBody<float>{static_cast<float*>(data), static_cast<float>(limit)});
}

}  // namespace
}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(SgdSpan);
HWY_EXPORT(AdamSpan);
HWY_EXPORT(RmspropSpan);
HWY_EXPORT(AdagradSpan);
HWY_EXPORT(NormSpan);
HWY_EXPORT(ScaleSpan);
HWY_EXPORT(ClampSpan);

void sgd_span(const SgdNumbers& numbers, const OptimSpan& span) { HWY_DYNAMIC_DISPATCH(SgdSpan)(numbers, span); }
void adam_span(const AdamNumbers& numbers, const OptimSpan& span) { HWY_DYNAMIC_DISPATCH(AdamSpan)(numbers, span); }
void rmsprop_span(const RmspropNumbers& numbers, const OptimSpan& span) {
  HWY_DYNAMIC_DISPATCH(RmspropSpan)(numbers, span);
}
void adagrad_span(const AdagradNumbers& numbers, const OptimSpan& span) {
  HWY_DYNAMIC_DISPATCH(AdagradSpan)(numbers, span);
}
double norm_span(NormKind kind, double power, bool is_double, const void* data, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(NormSpan)(kind, power, is_double, data, count);
}
void scale_span(double factor, bool is_double, void* data, int64_t count) {
  HWY_DYNAMIC_DISPATCH(ScaleSpan)(factor, is_double, data, count);
}
void clamp_span(double limit, bool is_double, void* data, int64_t count) {
  HWY_DYNAMIC_DISPATCH(ClampSpan)(limit, is_double, data, count);
}

}  // namespace tensord::kernels
#endif
