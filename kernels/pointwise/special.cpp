// Elementwise operators whose schemas fit no family of the tables: powers, division modes, clamping and ternary ones.
// Selection is in select.cpp.
#include <cmath>
#include <limits>

#include "core/ops/attributes/written.h"
#include "kernels/expr/expr.h"
#include "kernels/pointwise/pointwise.h"

namespace tensord::kernels {
namespace {

using gradient::Expr;
using gradient::put;
using ops::GradArgs;
using ops::Scalar;
using ops::TensorMeta;
using ops::WritesInto;

// The arguments of a gradient formula, in the order of the calls of `put`.
using Given = std::span<const Expr>;

// Division.

DType div_dtype(std::string_view op, Operands operands, const std::optional<std::string>& mode) {
  check(!mode || *mode == "floor" || *mode == "trunc", op,
        ": rounding_mode must be one of None, 'trunc', or 'floor', but found '", mode.value_or(""), "'");
  return compute_dtype(op, mode ? TypeClass::kArith : TypeClass::kFloat, operands);
}
Formula div_formula(const std::optional<std::string>& mode) {
  return !mode ? Formula::div : *mode == "floor" ? Formula::div_floor : Formula::div_trunc;
}
std::vector<Tensor> div_mode_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Expr g = args.grad_outputs[0], b = args.inputs[1];
  if (!args.inputs[2].is_none()) {
    for (const size_t i : {0, 1}) put(gradients, args, i, [](Given x) { return gradient::zeros(x[0]); }, {g});
    return gradients;
  }
  put(gradients, args, 0, [](Given x) { return x[0] / x[1]; }, {g, b});
  put(gradients, args, 1, [](Given x) { return -(x[0] * x[1]) / x[2]; }, {g, args.outputs[0], b});
  return gradients;
}
// None for operators that truncate a quotient of float16 or bfloat16.
template <class B>
PointwiseCall div_mode_call(const Tensor& a, B b, const std::optional<std::string>& mode) {
  const std::array operands{Operand(a), Operand(b)};
  const DType compute = div_dtype("div", operands, mode);
  const bool is_half = compute == DType::kFloat16 || compute == DType::kBFloat16;
  const Formula formula = div_formula(mode);
  return is_half && formula == Formula::div_trunc ? PointwiseCall() : PointwiseCall(formula, compute, operands);
}
// PyTorch rounds the quotient to the dtype before it truncates: in bfloat16, 12.99 is 13.
template <class B>
void run_div_mode(const ops::KernelContext& context, const Tensor& a, B b, const std::optional<std::string>& mode,
                  Tensor& out) {
  const PointwiseCall call = div_mode_call<B>(a, b, mode);
  if (call.count > 0) return run_pointwise(context, call, out);
  const std::array operands{Operand(a), Operand(b)};
  PointwiseCall division(Formula::div_trunc, promote_operands(operands), operands);
  division.formula = Formula::div;
  Tensor quotient = out.dtype() == division.compute ? out : Tensor::empty(out.sizes(), division.compute, out.device());
  run_pointwise(context, division, quotient);
  run_pointwise(context, PointwiseCall(Formula::trunc, division.compute, std::array{Operand(quotient)}), out);
}
template <class B>
void add_div_mode(const char* op) {
  ops::OpBuilder(op, __FILE__, __LINE__)
      .infer([](const Tensor& a, B b, std::optional<std::string> mode) {
        const std::array operands{Operand(a), Operand(b)};
        return infer_pointwise(operands, div_dtype("div", operands, mode));
      })
      .gradient(div_mode_gradient)
      .saves("self: other; other: other, result")
      .pointwise()
      .keeps_layout();
  ops::ImplBuilder(op, DeviceKind::kCPU, run_div_mode<B>);
  ops::ImplBuilder(op, DeviceKind::kCUDA, run_div_mode<B>);
  using F = decltype(&div_mode_call<B>);
  using Arguments = std::tuple<const Tensor&, B, const std::optional<std::string>&>;
  add_pointwise_maker(op, [](std::span<const ops::Value> v) {
    return ops::detail::call_unboxed<F, Arguments>(&div_mode_call<B>, v, std::make_index_sequence<3>());
  });
}
template <class B>
void add_floor_divide(const char* op) {
  ops::OpBuilder(op, __FILE__, __LINE__)
      .infer([](const Tensor& a, B b) {
        const std::array operands{Operand(a), Operand(b)};
        return infer_pointwise(operands, compute_dtype("floor_divide", TypeClass::kArith, operands));
      })
      .pointwise()
      .keeps_layout();
  add_pointwise_kernel(op, [](const Tensor& a, B b) {
    const std::array operands{Operand(a), Operand(b)};
    return PointwiseCall(Formula::div_floor, promote_operands(operands), operands);
  });
}

// Powers.

Formula pow_formula(const Scalar& exponent, DType compute) {
  const double e = exponent.to_double();
  if (e == 1 && is_floating(compute)) return Formula::same;
  if (e == 2) return Formula::square;
  if (e == 3) return Formula::pow_cube;
  if (!is_floating(compute)) return Formula::pow;
  if (e == 0.5) return Formula::pow_half;
  if (e == -0.5) return Formula::rsqrt;
  if (e == -1) return Formula::reciprocal;
  if (e == -2) return Formula::pow_reciprocal_square;
  return Formula::pow;
}
template <class A, class B>
TensorMeta infer_pow(A a, B b) {
  const std::array operands{Operand(a), Operand(b)};
  return infer_pointwise(operands, compute_dtype("pow", TypeClass::kArith, operands));
}
// d a^b: b a^(b-1) g, which is 0 for b = 0, and a^b log(a) g, which is 0 where a = 0 and b >= 0.
Expr pow_gradient_base(Given x) {
  const Expr &g = x[0], &a = x[1], &b = x[2];
  if (!b.is_tensor()) return b.number() == 0 ? gradient::zeros(g) : g * (gradient::pow(a, b - 1) * b);
  return gradient::where(b == 0, 0.0, g * (b * gradient::pow(a, b - 1)));
}
Expr pow_gradient_exponent(Given x) {
  const Expr &g = x[0], &a = x[1], &b = x[2], &y = x[3];
  const Expr slope = g * (y * gradient::log(a));
  if (a.is_tensor()) return gradient::where(a == 0, gradient::where(b >= 0, 0.0, slope), slope);
  return a.number() == 0 ? gradient::where(b >= 0, 0.0, slope) : slope;
}
std::vector<Tensor> pow_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Expr g = args.grad_outputs[0], a = args.inputs[0], b = args.inputs[1];
  put(gradients, args, 0, pow_gradient_base, {g, a, b});
  put(gradients, args, 1, pow_gradient_exponent, {g, a, b, args.outputs[0]});
  return gradients;
}
template <class A, class B>
void add_pow(const char* op) {
  ops::OpBuilder builder(op, __FILE__, __LINE__);
  builder.infer([](A a, B b) { return infer_pow<A, B>(a, b); })
      .gradient(pow_gradient)
      .saves(std::is_same_v<B, Scalar>   ? "self"
             : std::is_same_v<A, Scalar> ? "result"
                                         : "self: self, exponent; exponent: self, exponent, result")
      .pointwise()
      .keeps_layout();
  if constexpr (std::is_same_v<B, Scalar>) builder.set<WritesInto>(WritesInto::DTypes::kSameDType);
  add_pointwise_kernel(op, [](A a, B b) {
    const std::array operands{Operand(a), Operand(b)};
    const DType compute = promote_operands(operands);
    if constexpr (std::is_same_v<B, Scalar>) {
      check(is_floating(compute) || b.to_int() >= 0, "Integers to negative integer powers are not allowed.");
      const Formula formula = pow_formula(b, compute);
      if (formula != Formula::pow) return PointwiseCall(formula, compute, std::array{Operand(a)});
    }
    return PointwiseCall(Formula::pow, compute, operands);
  });
}

// Clamping.

using MaybeScalar = std::optional<Scalar>;
DType clamp_dtype(const Tensor& a, const MaybeScalar& low, const MaybeScalar& high) {
  check(low || high, "clamp: At least one of 'min' or 'max' must not be None");
  return compute_dtype("clamp", TypeClass::kArithNoBool,
                       std::array{Operand(a), low ? Operand(*low) : Operand(a), high ? Operand(*high) : Operand(a)});
}
Numbers clamp_numbers(const MaybeScalar& low, const MaybeScalar& high) {
  Numbers numbers{low.value_or(Scalar(0)), high.value_or(Scalar(0))};
  if (!low) {
    numbers.floats[0] = -std::numeric_limits<double>::infinity();
    numbers.ints[0] = std::numeric_limits<int64_t>::min();
  }
  if (!high) {
    numbers.floats[1] = std::numeric_limits<double>::infinity();
    numbers.ints[1] = std::numeric_limits<int64_t>::max();
  }
  return numbers;
}
PointwiseCall clamp(const Tensor& a, const MaybeScalar& low, const MaybeScalar& high) {
  const DType dtype = clamp_dtype(a, low, high);
  if (low && high && is_floating(dtype) && has_nan({*low, *high})) return nan_of(a, dtype);
  Numbers numbers = clamp_numbers(low, high);
  if (dtype == DType::kUInt8) {  // PyTorch takes a negative bound modulo 256
    if (low && low->to_int() < 0) numbers.ints[0] &= 255;
    if (high && high->to_int() < 0) numbers.ints[1] &= 255;
  }
  return {Formula::clamp, dtype, std::array{Operand(a)}, numbers};
}
// Passes the gradient of elements within the bounds; a missing bound is None.
Expr clamp_gradient_self(Given x) {
  const Expr &a = x[1], &low = x[2], &high = x[3];
  Expr g = x[0];
  if (!high.value.is_none()) g = gradient::where(a <= high, g, 0.0);
  if (!low.value.is_none()) g = gradient::where(a >= low, g, 0.0);
  return g;
}
// A bound has the gradient where it is the result; max wins over min.
Expr clamp_gradient_low(Given x) {
  const Expr &g = x[0], &a = x[1], &low = x[2], &high = x[3];
  const Expr used = gradient::where(a < low, g, 0.0);
  return high.value.is_none() ? used : gradient::where(low < high, used, 0.0);
}
Expr clamp_gradient_high(Given x) {
  const Expr &g = x[0], &a = x[1], &low = x[2], &high = x[3];
  const Expr used = gradient::where(a > high, g, 0.0);
  return low.value.is_none() ? used : gradient::where(high < low, g, used);
}
std::vector<Tensor> clamp_gradient(const GradArgs& args, const ops::Value& low, const ops::Value& high) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Expr g = args.grad_outputs[0], a = args.inputs[0];
  put(gradients, args, 0, clamp_gradient_self, {g, a, low, high});
  if (low.is_tensor()) put(gradients, args, 1, clamp_gradient_low, {g, a, low, high});
  if (high.is_tensor()) put(gradients, args, args.inputs.size() - 1, clamp_gradient_high, {g, a, low, high});
  return gradients;
}
OP("aten::clamp")
    .infer([](const Tensor& a, MaybeScalar low, MaybeScalar high) {
      return infer_pointwise(std::array{Operand(a)}, clamp_dtype(a, low, high));
    })
    .gradient([](const GradArgs& args) { return clamp_gradient(args, args.inputs[1], args.inputs[2]); })
    .saves("self")
    .pointwise()
    .keeps_layout();
OP("aten::clamp_min")
    .infer([](const Tensor& a, Scalar low) { return infer_pointwise(std::array{Operand(a)}, clamp_dtype(a, low, {})); })
    .gradient([](const GradArgs& args) { return clamp_gradient(args, args.inputs[1], {}); })
    .saves("self")
    .pointwise()
    .keeps_layout()
    .set<WritesInto>(WritesInto::kSameDType);
OP("aten::clamp_max")
    .infer([](const Tensor& a, Scalar high) {
      return infer_pointwise(std::array{Operand(a)}, clamp_dtype(a, {}, high));
    })
    .gradient([](const GradArgs& args) { return clamp_gradient(args, {}, args.inputs[1]); })
    .saves("self")
    .pointwise()
    .keeps_layout()
    .set<WritesInto>(WritesInto::kSameDType);

using MaybeTensor = std::optional<Tensor>;
// The operands that are present: self, then min and max.
std::vector<Operand> clamp_operands(const Tensor& a, const MaybeTensor& low, const MaybeTensor& high) {
  check(low || high, "clamp: At least one of 'min' or 'max' must not be None");
  std::vector<Operand> operands{Operand(a)};
  if (low) operands.emplace_back(*low);
  if (high) operands.emplace_back(*high);
  return operands;
}
OP("aten::clamp.Tensor")
    .infer([](const Tensor& a, MaybeTensor low, MaybeTensor high) {
      const auto operands = clamp_operands(a, low, high);
      return infer_pointwise(operands, compute_dtype("clamp", TypeClass::kArithNoBool, operands));
    })
    .gradient([](const GradArgs& args) { return clamp_gradient(args, args.inputs[1], args.inputs[2]); })
    .saves("self, min, max")
    .pointwise()
    .keeps_layout();
// Without these, a 0-d bound would be treated as a number, which has no gradient.
OP("aten::clamp_min.Tensor")
    .infer([](const Tensor& a, const Tensor& low) {
      const std::array operands{Operand(a), Operand(low)};
      return infer_pointwise(operands, compute_dtype("clamp_min", TypeClass::kArith, operands));
    })
    .gradient([](const GradArgs& args) { return clamp_gradient(args, args.inputs[1], {}); })
    .saves("self, min")
    .pointwise()
    .keeps_layout();
OP("aten::clamp_max.Tensor")
    .infer([](const Tensor& a, const Tensor& high) {
      const std::array operands{Operand(a), Operand(high)};
      return infer_pointwise(operands, compute_dtype("clamp_max", TypeClass::kArith, operands));
    })
    .gradient([](const GradArgs& args) { return clamp_gradient(args, {}, args.inputs[1]); })
    .saves("self, max")
    .pointwise()
    .keeps_layout();
PointwiseCall clamp_tensor(const Tensor& a, const MaybeTensor& low, const MaybeTensor& high) {
  const auto operands = clamp_operands(a, low, high);
  PointwiseCall call(low && high ? Formula::clamp_tensor
                     : low       ? Formula::maximum
                                 : Formula::minimum,
                     promote_operands(operands), operands);
  call.own_operands();
  return call;
}

// Rounding to a power of ten.

PointwiseCall round_decimals(const Tensor& a, int64_t decimals) {
  const double power = std::pow(10.0, std::abs(static_cast<double>(decimals)));
  return {decimals < 0 ? Formula::round_tens : Formula::round_decimals, a.dtype(), std::array{Operand(a)}, {power}};
}
OP("aten::round.decimals")
    .infer([](const Tensor& a, int64_t) {
      return infer_pointwise(std::array{Operand(a)},
                             compute_dtype("round", TypeClass::kFloatOnly, std::array{Operand(a)}));
    })
    .gradient(gradient::of_first([](const GradArgs& args, const Tensor&) {
      return gradient::zeros_like(args.inputs[0]);
    }))
    .saves("")
    .pointwise()
    .keeps_layout()
    .set<WritesInto>(WritesInto::kSameDType);

// Ternary arithmetic.

template <class W>
void add_lerp(const char* op) {
  ops::OpBuilder(op, __FILE__, __LINE__)
      .infer([](const Tensor& a, const Tensor& b, W weight) {
        check(a.dtype() == b.dtype(), "lerp: expected dtype ", name_of(a.dtype()), " for `end` but got dtype ",
              name_of(b.dtype()));
        const std::array operands{Operand(a), Operand(b), Operand(weight)};
        return infer_pointwise(operands, compute_dtype("lerp", TypeClass::kFloatOnly, std::span(operands).first(2)));
      })
      .gradient([](const GradArgs& args) {
        std::vector<Tensor> gradients(args.inputs.size());
        const Expr g = args.grad_outputs[0], w = args.inputs[2];
        put(gradients, args, 0, [](Given x) { return x[0] * (-x[1] + 1); }, {g, w});
        put(gradients, args, 1, [](Given x) { return x[0] * x[1]; }, {g, w});
        put(gradients, args, 2, [](Given x) { return x[0] * (x[2] - x[1]); }, {g, args.inputs[0], args.inputs[1]});
        return gradients;
      })
      .saves(std::is_same_v<W, Scalar> ? "" : "self: weight; end: weight; weight: self, end")
      .pointwise()
      .keeps_layout();
  add_pointwise_kernel(op, [](const Tensor& a, const Tensor& b, W weight) {
    return PointwiseCall(Formula::lerp, a.dtype(), std::array{Operand(a), Operand(b), Operand(weight)});
  });
}

void add_addc(const char* op, Formula formula, TypeClass type_class, gradient::GradientFn gradient) {
  ops::OpBuilder(op, __FILE__, __LINE__)
      .infer([=](const Tensor& a, const Tensor& b, const Tensor& c, Scalar) {
        const std::array operands{Operand(a), Operand(b), Operand(c)};
        return infer_pointwise(operands, compute_dtype(op, type_class, operands));
      })
      .gradient(std::move(gradient))
      .saves("tensor1: tensor2; tensor2: tensor1, tensor2")
      .pointwise()
      .keeps_layout();
  add_pointwise_kernel(op, [=](const Tensor& a, const Tensor& b, const Tensor& c, Scalar value) {
    const std::array operands{Operand(a), Operand(b), Operand(c)};
    return PointwiseCall(formula, promote_operands(operands), operands, {value});
  });
}
std::vector<Tensor> addcmul_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Expr g = args.grad_outputs[0], b = args.inputs[1], c = args.inputs[2], value = args.inputs[3];
  put(gradients, args, 0, [](Given x) { return x[0]; }, {g});
  put(gradients, args, 1, [](Given x) { return x[0] * (x[1] * x[2]); }, {g, c, value});
  put(gradients, args, 2, [](Given x) { return x[0] * (x[1] * x[2]); }, {g, b, value});
  return gradients;
}
std::vector<Tensor> addcdiv_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Expr g = args.grad_outputs[0], b = args.inputs[1], c = args.inputs[2], value = args.inputs[3];
  put(gradients, args, 0, [](Given x) { return x[0]; }, {g});
  put(gradients, args, 1, [](Given x) { return x[0] * x[1] / x[2]; }, {g, value, c});
  put(gradients, args, 2, [](Given x) { return -(x[0] * x[1] * x[2]) / (x[3] * x[3]); }, {g, value, b, c});
  return gradients;
}

bool register_special() {
  add_div_mode<const Tensor&>("aten::div.Tensor_mode");
  add_div_mode<Scalar>("aten::div.Scalar_mode");
  add_floor_divide<const Tensor&>("aten::floor_divide");
  add_floor_divide<Scalar>("aten::floor_divide.Scalar");
  add_pow<const Tensor&, const Tensor&>("aten::pow.Tensor_Tensor");
  add_pow<const Tensor&, Scalar>("aten::pow.Tensor_Scalar");
  add_pow<Scalar, const Tensor&>("aten::pow.Scalar");
  add_lerp<Scalar>("aten::lerp.Scalar");
  add_lerp<const Tensor&>("aten::lerp.Tensor");
  add_addc("aten::addcmul", Formula::addcmul, TypeClass::kArith, addcmul_gradient);
  add_addc("aten::addcdiv", Formula::addcdiv, TypeClass::kFloatOnly, addcdiv_gradient);
  add_pointwise_kernel("aten::round.decimals", round_decimals);
  add_pointwise_kernel("aten::clamp", clamp);
  add_pointwise_kernel("aten::clamp.Tensor", clamp_tensor);
  add_pointwise_kernel("aten::clamp_min.Tensor",
                       [](const Tensor& a, const Tensor& low) { return clamp_tensor(a, low, {}); });
  add_pointwise_kernel("aten::clamp_max.Tensor",
                       [](const Tensor& a, const Tensor& high) { return clamp_tensor(a, {}, high); });
  add_pointwise_kernel("aten::clamp_min", [](const Tensor& a, Scalar low) {
    const DType dtype = clamp_dtype(a, low, {});
    return is_floating(dtype) && has_nan({low}) ? nan_of(a, dtype) : kernels::clamp(a, low, {});
  });
  add_pointwise_kernel("aten::clamp_max", [](const Tensor& a, Scalar high) {
    const DType dtype = clamp_dtype(a, {}, high);
    return is_floating(dtype) && has_nan({high}) ? nan_of(a, dtype) : kernels::clamp(a, {}, high);
  });
  return true;
}
[[maybe_unused]] const bool special_registered = register_special();

}  // namespace
}  // namespace tensord::kernels
