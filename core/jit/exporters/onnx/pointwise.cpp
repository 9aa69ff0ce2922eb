// Element-wise operators.
#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/error.h"
#include "core/jit/exporters/onnx/call.h"
#include "core/ops/run.h"

namespace tensord::jit::onnx {
namespace {

using ops::Value;

Value meta_of(const Value& value) {
  if (!value.is_strided()) return value;
  const Tensor& tensor = value.to_tensor();
  return Tensor::meta(tensor.sizes(), tensor.dtype());
}

// The promoted type of the two operands.
DType common_type(Call& c) {
  const Value self = meta_of(c.in("self").a), other = meta_of(c.in("other").a);
  if (c.t().dtype() == DType::kBool && other.is_strided() && other.to_tensor().dtype() == DType::kBool)
    return DType::kBool;
  if (c.t().dtype() == DType::kBool && other.is_bool()) return DType::kBool;
  const ops::Op& add = ops::get_op(other.is_strided() ? "aten::add.Tensor" : "aten::add.Scalar");
  return ops::infer(add, ops::bind(add, {self, other})).at(0).to_tensor().dtype();
}

template <const char* kName>
void unary(Call& c) {
  c.set(c.emit(kName, {c.operand("self", c.dtype())}));
}

template <const char* kName>
void binary(Call& c) {
  const DType type = c.dtype();
  std::string other = c.operand("other", type);
  if (c.has("alpha") && !(c.in("alpha").a.is_number() && !c.in("alpha").is_dynamic && c.number("alpha") == 1)) {
    other = c.emit("Mul", {other, c.scalar(c.in("alpha"), type)});
  }
  c.set(c.emit(kName, {c.operand("self", type), other}));
}

void rsub(Call& c) {
  if (c.number("alpha") != 1) c.refuse("alpha cannot be exported to ONNX");
  c.set(c.emit("Sub", {c.operand("other", c.dtype()), c.operand("self", c.dtype())}));
}

template <const char* kName>
void compare(Call& c) {
  const DType type = common_type(c);
  c.set(c.emit(kName, {c.operand("self", type), c.operand("other", type)}));
}

void not_equal(Call& c) {
  const DType type = common_type(c);
  c.set(c.emit("Not", {c.emit("Equal", {c.operand("self", type), c.operand("other", type)})}));
}

std::string floor_divide(Call& c, const std::string& a, const std::string& b, DType type) {
  const std::string quotient = c.emit("Div", {a, b});
  if (is_floating(type)) return c.emit("Floor", {quotient});
  // ONNX truncates towards zero: subtract one if signs differ and there is a remainder.
  const std::string zero = c.scalar(0, type);
  const std::string rest = c.emit("Sub", {a, c.emit("Mul", {quotient, b})});
  const std::string differ = c.emit("Xor", {c.emit("Less", {rest, zero}), c.emit("Less", {b, zero})});
  const std::string is_left = c.emit("Not", {c.emit("Equal", {rest, zero})});
  const std::string less = c.cast(c.emit("And", {differ, is_left}), DType::kBool, type);
  return c.emit("Sub", {quotient, less});
}

std::string truncated(Call& c, const std::string& x) {
  return c.emit("Mul", {c.emit("Sign", {x}), c.emit("Floor", {c.emit("Abs", {x})})});
}

void divide(Call& c) {
  const DType type = c.dtype();
  const std::string a = c.operand("self", type), b = c.operand("other", type);
  const std::string mode = c.has("rounding_mode") ? c.text("rounding_mode") : "";
  if (mode.empty()) return c.set(c.emit("Div", {a, b}));
  if (mode == "floor") return c.set(floor_divide(c, a, b, type));
  const std::string quotient = c.emit("Div", {a, b});
  if (!is_floating(type)) return c.set(quotient);
  c.set(truncated(c, quotient));
}

void floor_divide(Call& c) {
  c.set(floor_divide(c, c.operand("self", c.dtype()), c.operand("other", c.dtype()), c.dtype()));
}

void remainder(Call& c) {
  const DType type = c.dtype();
  const std::string a = c.operand("self", type), b = c.operand("other", type);
  if (!is_floating(type)) return c.set(c.emit("Mod", {a, b}));
  c.set(c.emit("Sub", {a, c.emit("Mul", {c.emit("Floor", {c.emit("Div", {a, b})}), b})}));
}

// The result has the sign of the first operand.
void fmod(Call& c) {
  c.set(c.emit("Mod", {c.operand("self", c.dtype()), c.operand("other", c.dtype())}, {{"fmod", int64_t{1}}}));
}

void power(Call& c) {
  const char* base = c.has("self") ? "self" : "base";
  c.set(c.emit("Pow", {c.operand(base, c.dtype()), c.operand("exponent", c.dtype())}));
}

void where(Call& c) {
  const DType type = c.dtype();
  c.set(c.emit("Where", {c.operand("condition", DType::kBool), c.operand("self", type), c.operand("other", type)}));
}

void masked_fill(Call& c) {
  c.set(
      c.emit("Where", {c.operand("mask", DType::kBool), c.operand("value", c.dtype()), c.operand("self", c.dtype())}));
}

void clamp(Call& c) {
  const DType type = c.dtype();
  std::string x = c.operand("self", type);
  if (c.has("min")) x = c.emit("Max", {x, c.operand("min", type)});
  if (c.has("max")) x = c.emit("Min", {x, c.operand("max", type)});
  c.set(x);
}

void clamp_between(Call& c) {
  c.set(c.emit("Min", {c.emit("Max", {c.x(), c.operand("min_val", c.dtype())}), c.operand("max_val", c.dtype())}));
}

void relu6(Call& c) { c.set(c.emit("Min", {c.emit("Relu", {c.x()}), c.scalar(6, c.dtype())})); }

void silu(Call& c) {
  const std::string x = c.x();
  c.set(c.emit("Mul", {x, c.emit("Sigmoid", {x})}));
}

void gelu(Call& c) { c.set(c.emit("Gelu", {c.x()}, {{"approximate", c.text("approximate")}})); }
void hardsigmoid(Call& c) { c.set(c.emit("HardSigmoid", {c.x()}, {{"alpha", 1.0 / 6}, {"beta", 0.5}})); }
void leaky_relu(Call& c) { c.set(c.emit("LeakyRelu", {c.x()}, {{"alpha", c.number("negative_slope")}})); }

void elu(Call& c) {
  if (c.number("scale") != 1 || c.number("input_scale") != 1) c.refuse("scales cannot be exported to ONNX");
  c.set(c.emit("Elu", {c.x()}, {{"alpha", c.number("alpha")}}));
}

void softplus(Call& c) {
  const std::string x = c.x(), beta = c.scalar(c.number("beta"), c.dtype());
  const std::string scaled = c.emit("Mul", {x, beta});
  const std::string soft = c.emit("Div", {c.emit("Softplus", {scaled}), beta});
  c.set(c.emit("Where", {c.emit("Greater", {scaled, c.scalar(c.number("threshold"), c.dtype())}), x, soft}));
}

void prelu(Call& c) {
  std::string weight = c.x("weight");
  if (c.t("weight").numel() > 1 && c.t().ndim() > 1) {
    Dims sizes(static_cast<size_t>(c.t().ndim() - 1), 1);
    sizes[0] = -1;
    weight = c.reshape(weight, sizes);
  }
  c.set(c.emit("PRelu", {c.x(), weight}));
}

void glu(Call& c) {
  const int64_t dim = c.dim("dim", c.t().ndim());
  const Strings halves = c.emit_many("Split", {c.x()}, {{"axis", dim}, {"num_outputs", int64_t{2}}}, 2);
  c.set(c.emit("Mul", {halves[0], c.emit("Sigmoid", {halves[1]})}));
}

void rsqrt(Call& c) { c.set(c.emit("Reciprocal", {c.emit("Sqrt", {c.operand("self", c.dtype())})})); }
void square(Call& c) {
  const std::string x = c.x();
  c.set(c.emit("Mul", {x, x}));
}
void log1p(Call& c) { c.set(c.emit("Log", {c.emit("Add", {c.operand("self", c.dtype()), c.scalar(1, c.dtype())})})); }
void expm1(Call& c) { c.set(c.emit("Sub", {c.emit("Exp", {c.operand("self", c.dtype())}), c.scalar(1, c.dtype())})); }
void exp2(Call& c) { c.set(c.emit("Pow", {c.scalar(2, c.dtype()), c.operand("self", c.dtype())})); }
void log2(Call& c) {
  c.set(c.emit("Div", {c.emit("Log", {c.operand("self", c.dtype())}), c.scalar(std::numbers::ln2, c.dtype())}));
}
void log_sigmoid(Call& c) { c.set(c.emit("Neg", {c.emit("Softplus", {c.emit("Neg", {c.x()})})})); }
void logical_not(Call& c) { c.set(c.emit("Not", {c.operand("self", DType::kBool)})); }
void round(Call& c) {
  if (c.has("decimals") && c.integer("decimals") != 0) c.refuse("decimals cannot be exported to ONNX");
  c.set(c.emit("Round", {c.x()}));
}
// Integers need no rounding.
template <const char* kName>
void rounding(Call& c) {
  c.set(is_floating(c.dtype()) ? c.emit(kName, {c.x()}) : c.x());
}
void trunc(Call& c) { c.set(truncated(c, c.x())); }
void frac(Call& c) { c.set(c.emit("Sub", {c.x(), truncated(c, c.x())})); }

// For bools, these are the logical operators.
template <const char* kBits, const char* kLogical>
void bitwise(Call& c) {
  const DType type = c.dtype();
  c.set(c.emit(type == DType::kBool ? kLogical : kBits, {c.operand("self", type), c.operand("other", type)}));
}
template <const char* kLogical>
void logical(Call& c) {
  c.set(c.emit(kLogical, {c.operand("self", DType::kBool), c.operand("other", DType::kBool)}));
}
void bitwise_not(Call& c) { c.set(c.emit(c.dtype() == DType::kBool ? "Not" : "BitwiseNot", {c.x()})); }

void addcmul(Call& c) {
  const std::string product = c.emit("Mul", {c.operand("tensor1", c.dtype()), c.operand("tensor2", c.dtype())});
  c.set(c.emit("Add", {c.operand("self", c.dtype()), c.emit("Mul", {product, c.scalar(c.in("value"), c.dtype())})}));
}
void addcdiv(Call& c) {
  const std::string quotient = c.emit("Div", {c.operand("tensor1", c.dtype()), c.operand("tensor2", c.dtype())});
  c.set(c.emit("Add", {c.operand("self", c.dtype()), c.emit("Mul", {quotient, c.scalar(c.in("value"), c.dtype())})}));
}
void lerp(Call& c) {
  const std::string from = c.x();
  const std::string step = c.emit("Mul", {c.emit("Sub", {c.x("end"), from}), c.operand("weight", c.dtype())});
  c.set(c.emit("Add", {from, step}));
}

// Operators that are identities in ONNX.
void same(Call& c) {
  const char* name = c.op().schema.arguments[0].name.c_str();
  c.set(c.cast(c.x(name), c.t(name).dtype(), c.dtype()));
}

void dropout(Call& c) {
  if (c.flag("train")) c.refuse("drops elements: call eval() before the model is saved");
  c.set(c.x(c.op().schema.arguments[0].name.c_str()));
}

void copy(Call& c) {
  const std::string source = c.operand("src", c.dtype());
  const bool is_fixed = !c.tracer().has_open_sizes(c.in("src")) && !c.tracer().has_open_sizes(c.in("self"));
  const bool is_same = is_fixed && c.t("src").sizes() == c.t().sizes();
  c.set(is_same ? source : c.emit("Expand", {source, c.shape_of(c.x())}));
}

void fill(Call& c) { c.set(c.emit("Expand", {c.operand("value", c.dtype()), c.shape_of(c.x())})); }

constexpr char kRelu[] = "Relu";
constexpr char kExp[] = "Exp";
constexpr char kLog[] = "Log";
constexpr char kSqrt[] = "Sqrt";
constexpr char kAbs[] = "Abs";
constexpr char kNeg[] = "Neg";
constexpr char kFloor[] = "Floor";
constexpr char kCeil[] = "Ceil";
constexpr char kTanh[] = "Tanh";
constexpr char kSigmoid[] = "Sigmoid";
constexpr char kErf[] = "Erf";
constexpr char kSin[] = "Sin";
constexpr char kCos[] = "Cos";
constexpr char kTan[] = "Tan";
constexpr char kAsin[] = "Asin";
constexpr char kAcos[] = "Acos";
constexpr char kAtan[] = "Atan";
constexpr char kSinh[] = "Sinh";
constexpr char kCosh[] = "Cosh";
constexpr char kReciprocal[] = "Reciprocal";
constexpr char kMish[] = "Mish";
constexpr char kHardSwish[] = "HardSwish";
constexpr char kSelu[] = "Selu";
constexpr char kAdd[] = "Add";
constexpr char kSub[] = "Sub";
constexpr char kMul[] = "Mul";
constexpr char kMax[] = "Max";
constexpr char kMin[] = "Min";
constexpr char kEqual[] = "Equal";
constexpr char kLess[] = "Less";
constexpr char kLessOrEqual[] = "LessOrEqual";
constexpr char kGreater[] = "Greater";
constexpr char kGreaterOrEqual[] = "GreaterOrEqual";
constexpr char kAnd[] = "And";
constexpr char kOr[] = "Or";
constexpr char kXor[] = "Xor";
constexpr char kBitwiseAnd[] = "BitwiseAnd";
constexpr char kBitwiseOr[] = "BitwiseOr";
constexpr char kBitwiseXor[] = "BitwiseXor";

// Operators on scalars only are in numbers.cpp; if one name covers both, the arguments decide.
template <Handler kOfTensors>
void of_tensors(Call& c) {
  if (!c.results().empty() && !c.results()[0].a.is_strided()) return write_number(c);
  kOfTensors(c);
}

}  // namespace

std::span<const HandlerRow> pointwise_rows() {
  static const HandlerRow kRows[] = {
      {"aten::relu", unary<kRelu>},
      {"aten::exp", unary<kExp>},
      {"aten::log", unary<kLog>},
      {"aten::sqrt", unary<kSqrt>},
      {"aten::abs", unary<kAbs>},
      {"aten::neg", of_tensors<unary<kNeg>>},
      {"aten::floor", of_tensors<rounding<kFloor>>},
      {"aten::ceil", of_tensors<rounding<kCeil>>},
      {"aten::tanh", unary<kTanh>},
      {"aten::sigmoid", unary<kSigmoid>},
      {"aten::erf", unary<kErf>},
      {"aten::sin", unary<kSin>},
      {"aten::cos", unary<kCos>},
      {"aten::tan", unary<kTan>},
      {"aten::asin", unary<kAsin>},
      {"aten::acos", unary<kAcos>},
      {"aten::atan", unary<kAtan>},
      {"aten::sinh", unary<kSinh>},
      {"aten::cosh", unary<kCosh>},
      {"aten::reciprocal", unary<kReciprocal>},
      {"aten::mish", unary<kMish>},
      {"aten::hardswish", unary<kHardSwish>},
      {"aten::selu", unary<kSelu>},
      {"aten::silu", silu},
      {"aten::gelu", gelu},
      {"aten::hardsigmoid", hardsigmoid},
      {"aten::hardtanh", clamp_between},
      {"aten::relu6", relu6},
      {"aten::leaky_relu", leaky_relu},
      {"aten::elu", elu},
      {"aten::softplus", softplus},
      {"aten::prelu", prelu},
      {"aten::glu", glu},
      {"aten::rsqrt", rsqrt},
      {"aten::square", square},
      {"aten::log1p", log1p},
      {"aten::expm1", expm1},
      {"aten::exp2", exp2},
      {"aten::log2", log2},
      {"aten::log_sigmoid", log_sigmoid},
      {"aten::logical_not", logical_not},
      {"aten::round", of_tensors<round>},
      {"aten::trunc", trunc},
      {"aten::frac", frac},
      {"aten::add", of_tensors<binary<kAdd>>},
      {"aten::sub", of_tensors<binary<kSub>>},
      {"aten::rsub", rsub},
      {"aten::mul", of_tensors<binary<kMul>>},
      {"aten::maximum", binary<kMax>},
      {"aten::minimum", binary<kMin>},
      {"aten::div", of_tensors<divide>},
      {"aten::floor_divide", floor_divide},
      {"aten::remainder", of_tensors<remainder>},
      {"aten::fmod", fmod},
      {"aten::pow", of_tensors<power>},
      {"aten::eq", of_tensors<compare<kEqual>>},
      {"aten::ne", of_tensors<not_equal>},
      {"aten::lt", of_tensors<compare<kLess>>},
      {"aten::le", of_tensors<compare<kLessOrEqual>>},
      {"aten::gt", of_tensors<compare<kGreater>>},
      {"aten::ge", of_tensors<compare<kGreaterOrEqual>>},
      {"aten::logical_and", logical<kAnd>},
      {"aten::logical_or", logical<kOr>},
      {"aten::logical_xor", logical<kXor>},
      {"aten::bitwise_and", bitwise<kBitwiseAnd, kAnd>},
      {"aten::bitwise_or", bitwise<kBitwiseOr, kOr>},
      {"aten::bitwise_xor", bitwise<kBitwiseXor, kXor>},
      {"aten::__and__", of_tensors<bitwise<kBitwiseAnd, kAnd>>},
      {"aten::__or__", of_tensors<bitwise<kBitwiseOr, kOr>>},
      {"aten::__xor__", of_tensors<bitwise<kBitwiseXor, kXor>>},
      {"aten::bitwise_not", bitwise_not},
      {"aten::where", where},
      {"aten::masked_fill", masked_fill},
      {"aten::clamp", clamp},
      {"aten::clamp_min", clamp},
      {"aten::clamp_max", clamp},
      {"aten::clip", clamp},
      {"aten::addcmul", addcmul},
      {"aten::addcdiv", addcdiv},
      {"aten::lerp", lerp},
      {"aten::contiguous", same},
      {"aten::clone", same},
      {"aten::detach", same},
      {"aten::alias", same},
      {"aten::lift_fresh_copy", same},
      {"aten::lift_fresh", same},
      {"aten::to", same},
      {"aten::_to_copy", same},
      {"aten::type_as", same},
      {"aten::float", same},
      {"aten::positive", same},
      {"aten::dropout", dropout},
      {"aten::feature_dropout", dropout},
      {"aten::alpha_dropout", dropout},
      {"aten::copy", copy},
      {"aten::copy_", copy},
      {"aten::fill", fill},
      {"aten::fill_", fill},
  };
  return kRows;
}

}  // namespace tensord::jit::onnx
