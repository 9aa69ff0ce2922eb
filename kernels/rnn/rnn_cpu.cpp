// Products and gates of recurrent layers over packed panels, compiled for each instruction set and chosen
// at run time; see kernels.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rnn/rnn_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "kernels/base/math.h"
#include "kernels/rnn/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

#include "kernels/base/bounds-inl.h"

namespace hn = hwy::HWY_NAMESPACE;
template <class T>
using VecOf = hn::Vec<hn::ScalableTag<T>>;

// --- functions of vectors

// exp(x) = 2^n (1 + p) for |x| <= 87: n and p. The polynomial is that of formula::exp.
struct ExpParts {
  VecOf<float> p;
  hn::Vec<hn::RebindToSigned<hn::ScalableTag<float>>> exponent;  // n, in place for addition to a float's bits
};
HWY_INLINE ExpParts PartsOfExp(VecOf<float> x) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto magic = hn::Set(d, 12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  const auto shifted = hn::MulAdd(x, hn::Set(d, 1.44269504088896341f), magic);
  const auto n = hn::Sub(shifted, magic);
  const auto r = hn::NegMulAdd(n, hn::Set(d, -2.12194440054690583e-4f), hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x));
  auto q = hn::MulAdd(hn::Set(d, 1.395080890e-03f), r, hn::Set(d, 8.369072861e-03f));
  q = hn::MulAdd(q, r, hn::Set(d, 4.166620104e-02f));
  q = hn::MulAdd(q, r, hn::Set(d, 1.666651731e-01f));
  q = hn::MulAdd(q, r, hn::Set(d, 5.000000097e-01f));
  return {hn::MulAdd(q, hn::Mul(r, r), r), hn::ShiftLeft<23>(hn::BitCast(di, shifted))};
}

HWY_INLINE VecOf<float> Bounded(VecOf<float> x, float bound) {
  const hn::ScalableTag<float> d;
  return at_most(at_least(x, hn::Set(d, -bound)), hn::Set(d, bound));
}

// 1 + exp(-x), the sigmoid's reciprocal. Beyond the bound the sigmoid is 0 or 1 to within 1e-37.
HWY_INLINE VecOf<float> OnePlusExpNeg(VecOf<float> x) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto one = hn::Set(d, 1.0f);
  const ExpParts parts = PartsOfExp(hn::Neg(Bounded(x, 86.0f)));
  return hn::Add(one, hn::BitCast(d, hn::Add(hn::BitCast(di, hn::Add(one, parts.p)), parts.exponent)));
}

// exp(2x) - 1, of which tanh(x) is m / (m + 2), with small relative error for small x too. Beyond the
// bound tanh is 1 or -1.
HWY_INLINE VecOf<float> Expm1Twice(VecOf<float> x) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto one = hn::Set(d, 1.0f), bounded = Bounded(x, 10.0f);
  const ExpParts parts = PartsOfExp(hn::Add(bounded, bounded));
  const auto scale = hn::BitCast(d, hn::Add(hn::BitCast(di, one), parts.exponent));
  return hn::MulAdd(scale, parts.p, hn::Sub(scale, one));
}

HWY_INLINE VecOf<float> Tanh(VecOf<float> x) {
  const auto m = Expm1Twice(x);
  return hn::Div(m, hn::Add(m, hn::Set(hn::ScalableTag<float>(), 2.0f)));
}
// sigmoid(gate) * x, and sigmoid(gate) * tanh(x), with one division.
HWY_INLINE VecOf<float> Gated(VecOf<float> gate, VecOf<float> x) { return hn::Div(x, OnePlusExpNeg(gate)); }
HWY_INLINE VecOf<float> GatedTanh(VecOf<float> gate, VecOf<float> x) {
  const auto m = Expm1Twice(x);
  return hn::Div(m, hn::Mul(OnePlusExpNeg(gate), hn::Add(m, hn::Set(hn::ScalableTag<float>(), 2.0f))));
}

// Doubles, one by one: for equal results, not for speed.
template <class F>
HWY_INLINE VecOf<double> Each(VecOf<double> x, F&& function) {
  const hn::ScalableTag<double> d;
  HWY_ALIGN double values[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(x, d, values);
  for (size_t i = 0; i < hn::Lanes(d); ++i) values[i] = function(values[i]);
  return hn::Load(d, values);
}
HWY_INLINE VecOf<double> Tanh(VecOf<double> x) {
  return Each(x, [](double v) { return formula::tanh(v); });
}
HWY_INLINE VecOf<double> Gated(VecOf<double> gate, VecOf<double> x) {
  return hn::Mul(Each(gate, [](double v) { return formula::sigmoid(v); }), x);
}
HWY_INLINE VecOf<double> GatedTanh(VecOf<double> gate, VecOf<double> x) { return Gated(gate, Tanh(x)); }

// Keeps NaN.
template <class T>
HWY_INLINE VecOf<T> Relu(VecOf<T> x) {
  return hn::IfThenElse(hn::Lt(x, hn::Zero(hn::ScalableTag<T>())), hn::Zero(hn::ScalableTag<T>()), x);
}

// --- products

// The number of rows whose sums fit into the registers, with `columns` vectors each.
constexpr int MaxRows(int columns) {
#if HWY_TARGET <= HWY_AVX3
  return columns == 2 ? 8 : columns == 3 ? 8 : 6;
#else
  return columns == 4 ? 3 : 4;
#endif
}

// sums[m][c] += x[m] @ column c of the panel. Each sum runs over k in order, whatever the number of
// rows, so a row's result does not depend on its neighbors.
template <class T, int kRows, int kColumns>
HWY_INLINE void Accumulate(const T* const* rows, const T* panel, int64_t inputs, VecOf<T> (&sums)[kRows][kColumns]) {
  const hn::ScalableTag<T> d;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  const T* x[kRows];
  for (int m = 0; m < kRows; ++m) x[m] = rows[m];
#pragma GCC unroll 4
  for (int64_t k = 0; k < inputs; ++k) {
    VecOf<T> w[kColumns];
    for (int c = 0; c < kColumns; ++c) w[c] = hn::Load(d, panel + (k * kColumns + c) * kLanes);
    for (int m = 0; m < kRows; ++m) {
      const VecOf<T> v = hn::Set(d, x[m][k]);
      for (int c = 0; c < kColumns; ++c) sums[m][c] = hn::MulAdd(v, w[c], sums[m][c]);
    }
  }
}

// Calls function(std::integral_constant<int, count>).
template <int kMax, class F>
HWY_INLINE void WithCount(int count, F&& function) {
  if constexpr (kMax > 1) {
    if (count < kMax) return WithCount<kMax - 1>(count, function);
  }
  function(std::integral_constant<int, kMax>());
}

template <class T, int kColumns>
void InputPanel(const RnnInputArgs<T>& args, int64_t panel) {
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  constexpr int kMax = MaxRows(kColumns);
  const hn::ScalableTag<T> d;
  const T* weights = args.weights + panel * args.inputs * kColumns * kLanes;
  const T* bias = args.bias + panel * kColumns * kLanes;
  T* out = args.gates + panel * kColumns * kLanes;
  const T* rows[kMax];
  int count = 0;
  const auto flush = [&] {
    WithCount<kMax>(count, [&](auto max) HWY_ATTR {
      constexpr int kRows = decltype(max)::value;
      VecOf<T> sums[kRows][kColumns];
      for (int m = 0; m < kRows; ++m) {
        for (int c = 0; c < kColumns; ++c) sums[m][c] = hn::Load(d, bias + c * kLanes);
      }
      Accumulate<T, kRows, kColumns>(rows, weights, args.inputs, sums);
      for (int m = 0; m < kRows; ++m) {
        for (int c = 0; c < kColumns; ++c) hn::Store(sums[m][c], d, out + m * args.gates_stride + c * kLanes);
      }
    });
    out += count * args.gates_stride;
    count = 0;
  };
  for (int64_t i = args.begin; i < args.end; ++i) {
    const int64_t step = args.is_reverse ? args.steps.count - 1 - i : i;
    for (int64_t row = args.part.first_row; row < args.part.end(args.steps, step); ++row) {
      rows[count++] = args.x.at(args.steps, step, row);
      if (count == kMax) flush();
    }
  }
  if (count > 0) flush();
}

template <class T>
void Input(int columns, const RnnInputArgs<T>& args) {
  for (int64_t panel = args.part.first_panel; panel < args.part.end_panel; ++panel) {
    if (columns == 4)
      InputPanel<T, 4>(args, panel);
    else if (columns == 3)
      InputPanel<T, 3>(args, panel);
    else
      InputPanel<T, 2>(args, panel);
  }
}

// --- the state of a step

// The part of a vector of results that exists.
template <class T>
HWY_INLINE void StoreUnits(VecOf<T> value, int64_t units, T* out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (units >= lanes) return hn::StoreU(value, d, out);
  HWY_ALIGN T values[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(value, d, values);
  for (int64_t i = 0; i < units; ++i) out[i] = values[i];
}

// Finishes the sums of kRows rows from `row` on: initializes them, adds the product with the previous state, and
// applies the gates.
template <class T, RnnKind kKind, int kRows>
HWY_INLINE void StepRows(const RnnStepArgs<T>& args, int64_t panel, int64_t row) {
  constexpr int kColumns = kKind == RnnKind::kLstm ? 4 : kKind == RnnKind::kGru ? 3 : kPlainColumns;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  const hn::ScalableTag<T> d;
  const int64_t unit = panel * kLanes * (kKind == RnnKind::kLstm || kKind == RnnKind::kGru ? 1 : kPlainColumns);
  const T* gates = args.gates + (row - args.part.first_row) * args.gates_stride + panel * kColumns * kLanes;
  const T* previous[kRows];
  VecOf<T> sums[kRows][kColumns];
  for (int m = 0; m < kRows; ++m) {
    previous[m] = args.previous + (row + m) * args.previous_stride;
    for (int c = 0; c < kColumns; ++c) sums[m][c] = hn::Load(d, gates + m * args.gates_stride + c * kLanes);
    if constexpr (kKind == RnnKind::kGru) sums[m][2] = hn::Load(d, args.bias + unit);
  }
  Accumulate<T, kRows, kColumns>(previous, args.weights + panel * args.inputs * kColumns * kLanes, args.inputs, sums);
  for (int m = 0; m < kRows; ++m) {
    T* next = args.next + (row + m) * args.next_stride + unit;
    T* out = args.out ? args.out + (row + m) * args.out_stride + unit : nullptr;
    const auto put = [&](VecOf<T> h, int c) HWY_ATTR {
      hn::Store(h, d, next + c * kLanes);
      if (out) StoreUnits<T>(h, args.units - unit - c * kLanes, out + c * kLanes);
    };
    if constexpr (kKind == RnnKind::kLstm) {
      T* cell = args.cell + (row + m) * args.cell_stride + unit;
      const VecOf<T> c = hn::Add(Gated(sums[m][1], hn::Load(d, cell)), GatedTanh(sums[m][0], sums[m][2]));
      hn::Store(c, d, cell);
      put(GatedTanh(sums[m][3], c), 0);
    } else if constexpr (kKind == RnnKind::kGru) {
      const VecOf<T> x = hn::Load(d, gates + m * args.gates_stride + 2 * kLanes);
      const VecOf<T> n = Tanh(hn::Add(Gated(sums[m][0], sums[m][2]), x));
      const VecOf<T> h = hn::Load(d, args.previous + (row + m) * args.previous_stride + unit);
      put(hn::Add(Gated(sums[m][1], hn::Sub(h, n)), n), 0);
    } else {
      for (int c = 0; c < kColumns; ++c) put(kKind == RnnKind::kTanh ? Tanh(sums[m][c]) : Relu<T>(sums[m][c]), c);
    }
  }
}

// Rows in blocks of nearly the same size; function(row, std::integral_constant<int, rows>).
template <int kMax, class F>
HWY_INLINE void ForRowBlocks(int64_t begin, int64_t end, F&& function) {
  for (int64_t row = begin; row < end;) {
    const int64_t blocks = (end - row + kMax - 1) / kMax, rows = (end - row + blocks - 1) / blocks;
    WithCount<kMax>(static_cast<int>(rows), [&](auto count) HWY_ATTR { function(row, count); });
    row += rows;
  }
}

template <class T, RnnKind kKind>
void StepPanels(const RnnStepArgs<T>& args) {
  constexpr int kMax = MaxRows(kKind == RnnKind::kLstm ? 4 : kKind == RnnKind::kGru ? 3 : kPlainColumns);
  const RnnPart& part = args.part;
  for (int64_t i = part.first_panel; i < part.end_panel; ++i) {
    const int64_t panel = args.from_last ? part.first_panel + part.end_panel - 1 - i : i;
    ForRowBlocks<kMax>(part.first_row, part.end_row, [&](int64_t row, auto count) HWY_ATTR {
      StepRows<T, kKind, decltype(count)::value>(args, panel, row);
    });
  }
}

template <class T>
void Step(RnnKind kind, const RnnStepArgs<T>& args) {
  switch (kind) {
    case RnnKind::kLstm: return StepPanels<T, RnnKind::kLstm>(args);
    case RnnKind::kGru: return StepPanels<T, RnnKind::kGru>(args);
    case RnnKind::kTanh: return StepPanels<T, RnnKind::kTanh>(args);
    case RnnKind::kRelu: return StepPanels<T, RnnKind::kRelu>(args);
  }
}

template <class T>
void Project(const RnnStepArgs<T>& args) {
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  const hn::ScalableTag<T> d;
  for (int64_t panel = args.part.first_panel; panel < args.part.end_panel; ++panel) {
    const int64_t unit = panel * kLanes * kPlainColumns;
    const T* weights = args.weights + unit * args.inputs;
    ForRowBlocks<MaxRows(kPlainColumns)>(args.part.first_row, args.part.end_row, [&](int64_t row, auto count) HWY_ATTR {
      constexpr int kRows = decltype(count)::value;
      const T* previous[kRows];
      VecOf<T> sums[kRows][kPlainColumns];
      for (int m = 0; m < kRows; ++m) {
        previous[m] = args.previous + (row + m) * args.previous_stride;
        for (int c = 0; c < kPlainColumns; ++c) sums[m][c] = hn::Zero(d);
      }
      Accumulate<T, kRows, kPlainColumns>(previous, weights, args.inputs, sums);
      for (int m = 0; m < kRows; ++m) {
        for (int c = 0; c < kPlainColumns; ++c) {
          const int64_t at = unit + c * kLanes;
          hn::Store(sums[m][c], d, args.next + (row + m) * args.next_stride + at);
          StoreUnits<T>(sums[m][c], args.units - at, args.out + (row + m) * args.out_stride + at);
        }
      }
    });
  }
}

// --- single cells

template <class T>
HWY_INLINE VecOf<T> LoadUnits(const T* from, int64_t units) {
  const hn::ScalableTag<T> d;
  if (units >= static_cast<int64_t>(hn::Lanes(d))) return hn::LoadU(d, from);
  HWY_ALIGN T values[HWY_MAX_BYTES / sizeof(T)] = {};
  for (int64_t i = 0; i < units; ++i) values[i] = from[i];
  return hn::Load(d, values);
}

template <class T>
void Cell(RnnKind kind, const RnnCellArgs<T>& args) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  for (int64_t unit = 0; unit < args.units; unit += lanes) {
    const int64_t count = args.units - unit;
    const auto load = [&](const T* from, int gate)
                          HWY_ATTR { return LoadUnits<T>(from + gate * args.units + unit, count); };
    const auto with_bias = [&](const T* product, const T* bias, int gate) HWY_ATTR {
      const VecOf<T> value = load(product, gate);
      return bias ? hn::Add(value, load(bias, gate)) : value;
    };
    const auto x = [&](int gate) HWY_ATTR { return with_bias(args.input, args.input_bias, gate); };
    const auto h = [&](int gate) HWY_ATTR { return with_bias(args.recurrent, args.recurrent_bias, gate); };
    VecOf<T> next;
    if (kind == RnnKind::kLstm) {
      const VecOf<T> kept = Gated(hn::Add(x(1), h(1)), load(args.previous_cell, 0));
      const VecOf<T> cell = hn::Add(kept, GatedTanh(hn::Add(x(0), h(0)), hn::Add(x(2), h(2))));
      StoreUnits<T>(cell, count, args.cell + unit);
      next = GatedTanh(hn::Add(x(3), h(3)), cell);
    } else if (kind == RnnKind::kGru) {
      const VecOf<T> n = Tanh(hn::Add(Gated(hn::Add(x(0), h(0)), h(2)), x(2)));
      next = hn::Add(Gated(hn::Add(x(1), h(1)), hn::Sub(load(args.previous, 0), n)), n);
    } else {
      const VecOf<T> sum = hn::Add(x(0), h(0));
      next = kind == RnnKind::kTanh ? Tanh(sum) : Relu<T>(sum);
    }
    StoreUnits<T>(next, count, args.next + unit);
  }
}

template <class T>
RnnKernels<T> Kernels() {
  return {static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>())), Input<T>, Step<T>, Project<T>, Cell<T>};
}
RnnKernels<float> KernelsF32() { return Kernels<float>(); }
RnnKernels<double> KernelsF64() { return Kernels<double>(); }

}  // namespace
}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(KernelsF32);
HWY_EXPORT(KernelsF64);

template <>
const RnnKernels<float>& rnn_kernels() {
  static const RnnKernels<float> kernels = HWY_DYNAMIC_DISPATCH(KernelsF32)();
  return kernels;
}
template <>
const RnnKernels<double>& rnn_kernels() {
  static const RnnKernels<double> kernels = HWY_DYNAMIC_DISPATCH(KernelsF64)();
  return kernels;
}

}  // namespace tensord::kernels
#endif
