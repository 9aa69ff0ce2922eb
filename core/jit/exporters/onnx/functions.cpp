// Functions and losses that have no ONNX operator, written as formulas.
#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/error.h"
#include "core/jit/exporters/onnx/call.h"

namespace tensord::jit::onnx {
namespace {

std::string x_of(Call& c) { return c.operand("self", c.dtype()); }
std::string other_of(Call& c) { return c.operand("other", c.dtype()); }
std::string zero(Call& c) { return c.scalar(0, c.dtype()); }
std::string number(Call& c, const char* name) { return c.operand(name, c.dtype()); }

// Whether x is negative, including -0.
std::string is_negative(Call& c, const std::string& x) {
  return c.emit("Or", {c.emit("Less", {x, zero(c)}), c.emit("Less", {c.emit("Reciprocal", {x}), zero(c)})});
}

// The arc tangent of the quotient, rotated by π if x is negative. Two infinities are treated as ones, and so are two
// zeros if x is negative.
void atan2(Call& c) {
  std::string y = x_of(c), x = other_of(c);
  const std::string are_infinite = c.emit("And", {c.emit("IsInf", {y}), c.emit("IsInf", {x})});
  const std::string turned_x = is_negative(c, x), turned_y = is_negative(c, y);
  const std::string are_zero = c.emit("And", {c.emit("Equal", {x, zero(c)}), c.emit("Equal", {y, zero(c)})});
  const std::string quotient =
      c.emit("Where", {are_infinite, c.emit("Mul", {c.emit("Sign", {y}), c.emit("Sign", {x})}), c.emit("Div", {y, x})});
  const std::string angle = c.emit("Atan", {c.emit("Where", {are_zero, zero(c), quotient})});
  const double pi = std::numbers::pi;
  const std::string turn = c.emit("Where", {turned_y, c.scalar(-pi, c.dtype()), c.scalar(pi, c.dtype())});
  c.set(c.emit("Where", {turned_x, c.emit("Add", {angle, turn}), angle}));
}

// log(base^a + base^b): the larger one plus the contribution of the smaller one, which is nothing for equal infinities.
template <bool kIsBinary>
void log_add_exp(Call& c) {
  const std::string a = x_of(c), b = other_of(c);
  const std::string distance = c.emit("Neg", {c.emit("Abs", {c.emit("Sub", {a, b})})});
  std::string added;
  if (kIsBinary) {
    const std::string ln2 = c.scalar(std::numbers::ln2, c.dtype());
    added = c.emit("Div", {c.emit("Softplus", {c.emit("Mul", {distance, ln2})}), ln2});
  } else {
    added = c.emit("Softplus", {distance});
  }
  const std::string same = c.emit("And", {c.emit("IsInf", {a}), c.emit("Equal", {a, b})});
  c.set(c.emit("Where", {same, a, c.emit("Add", {c.emit("Max", {a, b}), added})}));
}

void xlogy(Call& c) {
  const std::string x = x_of(c), other = other_of(c);
  const std::string product = c.emit("Mul", {x, c.emit("Log", {other})});
  const std::string is_nothing =
      c.emit("And", {c.emit("Equal", {x, zero(c)}), c.emit("Equal", {other, other})});  // not NaN
  c.set(c.emit("Where", {is_nothing, zero(c), product}));
}

// Returns the other operand if one is NaN.
template <const char* kName>
void extreme_of_numbers(Call& c) {
  const std::string a = x_of(c), b = other_of(c), both = c.emit(kName, {a, b});
  if (!is_floating(c.dtype())) return c.set(both);
  const std::string else_b = c.emit("Where", {c.emit("IsNaN", {b}), a, both});
  c.set(c.emit("Where", {c.emit("IsNaN", {a}), b, else_b}));
}

void heaviside(Call& c) {
  const std::string x = x_of(c), step = c.cast(c.emit("Greater", {x, zero(c)}), DType::kBool, c.dtype());
  c.set(c.emit("Where", {c.emit("Equal", {x, zero(c)}), number(c, "values"), step}));
}

void hardshrink(Call& c) {
  const std::string x = x_of(c), bound = number(c, "lambd");
  const std::string is_within = c.emit("And", {c.emit("GreaterOrEqual", {x, c.emit("Neg", {bound})}),  //
                                               c.emit("LessOrEqual", {x, bound})});
  c.set(c.emit("Where", {is_within, zero(c), x}));
}

void softshrink(Call& c) {
  const std::string x = x_of(c), bound = number(c, "lambd");
  const std::string is_within = c.emit("GreaterOrEqual", {x, c.emit("Neg", {bound})});
  const std::string raised = c.emit("Where", {is_within, zero(c), c.emit("Add", {x, bound})});
  c.set(c.emit("Where", {c.emit("Greater", {x, bound}), c.emit("Sub", {x, bound}), raised}));
}

// PyTorch's sign of NaN is 0, ONNX's is NaN.
void sign(Call& c) {
  const std::string x = x_of(c), result = c.emit("Sign", {x});
  c.set(is_floating(c.dtype()) ? c.emit("Where", {c.emit("IsNaN", {x}), zero(c), result}) : result);
}

void threshold(Call& c) {
  const std::string x = x_of(c);
  c.set(c.emit("Where", {c.emit("LessOrEqual", {x, number(c, "threshold")}), number(c, "value"), x}));
}

void celu(Call& c) {
  const double alpha = c.number("alpha");
  if (!(alpha > 0)) c.refuse("an alpha that is not above 0 cannot be exported to ONNX");
  const std::string x = x_of(c), factor = c.scalar(alpha, c.dtype());
  const std::string below = c.emit("Mul", {factor, c.emit("Elu", {c.emit("Div", {x, factor})})});
  c.set(c.emit("Where", {c.emit("Greater", {x, zero(c)}), x, below}));
}

void logit(Call& c) {
  std::string x = x_of(c);
  const std::string one = c.scalar(1, c.dtype());
  if (c.has("eps")) {
    const double eps = c.number("eps");
    x = c.emit("Min", {c.emit("Max", {x, c.scalar(eps, c.dtype())}), c.scalar(1 - eps, c.dtype())});
  }
  c.set(c.emit("Log", {c.emit("Div", {x, c.emit("Sub", {one, x})})}));
}

void sinc(Call& c) {
  const std::string turned = c.emit("Mul", {x_of(c), c.scalar(std::numbers::pi, c.dtype())});
  const std::string quotient = c.emit("Div", {c.emit("Sin", {turned}), turned});
  c.set(c.emit("Where", {c.emit("Equal", {turned, zero(c)}), c.scalar(1, c.dtype()), quotient}));
}

void scaled(Call& c, double factor) { c.set(c.emit("Mul", {x_of(c), c.scalar(factor, c.dtype())})); }
void log10(Call& c) { c.set(c.emit("Div", {c.emit("Log", {x_of(c)}), c.scalar(std::numbers::ln10, c.dtype())})); }

template <const char* kName>
void unary_of_x(Call& c) {
  c.set(c.emit(kName, {x_of(c)}));
}

// ONNX's IsNaN and IsInf take floats only; an integer converted to float is neither.
std::string float_of(Call& c) {
  const DType dtype = c.t().dtype();
  return c.cast(c.x(), dtype, is_floating(dtype) ? dtype : DType::kFloat32);
}
void is_nan(Call& c) { c.set(c.emit("IsNaN", {float_of(c)})); }
void is_infinite(Call& c) { c.set(c.emit("IsInf", {float_of(c)})); }
void is_finite(Call& c) {
  const std::string x = float_of(c);
  c.set(c.emit("Not", {c.emit("Or", {c.emit("IsNaN", {x}), c.emit("IsInf", {x})})}));
}
void is_positive_infinity(Call& c) { c.set(c.emit("IsInf", {float_of(c)}, {{"detect_negative", int64_t{0}}})); }
void is_negative_infinity(Call& c) { c.set(c.emit("IsInf", {float_of(c)}, {{"detect_positive", int64_t{0}}})); }

double largest(DType dtype) {
  switch (dtype) {
    case DType::kFloat16: return 65504;
    case DType::kBFloat16: return 0x1.FEp127;
    case DType::kFloat32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}

void nan_to_num(Call& c) {
  const std::string x = c.x();
  if (!is_floating(c.dtype())) return c.set(x);
  const auto given = [&](const char* name, double otherwise) {
    return c.has(name) ? number(c, name) : c.scalar(otherwise, c.dtype());
  };
  const double most = largest(c.dtype());
  const auto where_infinite = [&](const char* other_sign, const std::string& is, const std::string& x_now) {
    return c.emit("Where", {c.emit("IsInf", {x}, {{other_sign, int64_t{0}}}), is, x_now});
  };
  std::string out = c.emit("Where", {c.emit("IsNaN", {x}), given("nan", 0), x});
  out = where_infinite("detect_negative", given("posinf", most), out);
  c.set(where_infinite("detect_positive", given("neginf", -most), out));
}

// Applies the loss's reduction to its elements.
void reduce_loss(Call& c, const std::string& elements) {
  const int64_t reduction = c.integer("reduction");
  if (reduction == 0) return c.set(elements);
  c.set(c.emit(reduction == 1 ? "ReduceMean" : "ReduceSum", {elements}, {{"keepdims", int64_t{0}}}));
}

std::string difference(Call& c) { return c.emit("Sub", {x_of(c), number(c, "target")}); }

void mse_loss(Call& c) {
  const std::string d = difference(c);
  reduce_loss(c, c.emit("Mul", {d, d}));
}

void l1_loss(Call& c) { reduce_loss(c, c.emit("Abs", {difference(c)})); }

// Quadratic below a bound, linear beyond it, times `scale`.
void bent_loss(Call& c, double bound, double scale) {
  const std::string d = c.emit("Abs", {difference(c)});
  if (bound == 0) return reduce_loss(c, c.emit("Mul", {d, c.scalar(scale, c.dtype())}));
  const std::string square = c.emit("Mul", {c.emit("Mul", {d, d}), c.scalar(0.5 * scale / bound, c.dtype())});
  const std::string line =
      c.emit("Mul", {c.emit("Sub", {d, c.scalar(0.5 * bound, c.dtype())}), c.scalar(scale, c.dtype())});
  reduce_loss(c, c.emit("Where", {c.emit("Less", {d, c.scalar(bound, c.dtype())}), square, line}));
}

void smooth_l1_loss(Call& c) { bent_loss(c, c.number("beta"), 1); }
void huber_loss(Call& c) { bent_loss(c, c.number("delta"), c.number("delta")); }

std::string norm(Call& c, const std::string& x, int64_t dim, bool keeps) {
  return c.emit("ReduceL2", {x, c.int_vector({dim})}, {{"keepdims", int64_t{keeps}}});
}

void cosine_similarity(Call& c) {
  const int64_t rank = c.t("x1").ndim();
  if (c.t("x1").sizes() != c.t("x2").sizes() || c.t2("x1").sizes() != c.t2("x2").sizes()) {
    c.refuse("tensors of different sizes cannot be exported to ONNX");
  }
  const int64_t dim = c.dim("dim", rank);
  const std::string eps = c.scalar(c.number("eps"), c.dtype());
  const auto scaled_to_one = [&](const char* name) {
    const std::string x = c.operand(name, c.dtype());
    return c.emit("Div", {x, c.emit("Max", {norm(c, x, dim, true), eps})});
  };
  const std::string product = c.emit("Mul", {scaled_to_one("x1"), scaled_to_one("x2")});
  c.set(c.emit("ReduceSum", {product, c.int_vector({dim})}, {{"keepdims", int64_t{0}}}));
}

void pairwise_distance(Call& c) {
  const double p = c.number("p");
  if (p != 1 && p != 2) c.refuse(concat("distances of order ", p, " cannot be exported to ONNX"));
  const std::string apart = c.emit("Sub", {c.operand("x1", c.dtype()), c.operand("x2", c.dtype())});
  const std::string shifted = c.emit("Add", {apart, c.scalar(c.number("eps"), c.dtype())});
  c.set(c.emit(p == 1 ? "ReduceL1" : "ReduceL2", {shifted, c.int_vector({-1})},
               {{"keepdims", int64_t{c.flag("keepdim")}}}));
}

constexpr char kAsinh[] = "Asinh";
constexpr char kAcosh[] = "Acosh";
constexpr char kAtanh[] = "Atanh";
constexpr char kMaxName[] = "Max";
constexpr char kMinName[] = "Min";

}  // namespace

std::span<const HandlerRow> function_rows() {
  static const HandlerRow kRows[] = {
      {"aten::asinh", unary_of_x<kAsinh>},
      {"aten::acosh", unary_of_x<kAcosh>},
      {"aten::atanh", unary_of_x<kAtanh>},
      {"aten::atan2", atan2},
      {"aten::logaddexp", log_add_exp<false>},
      {"aten::logaddexp2", log_add_exp<true>},
      {"aten::xlogy", xlogy},
      {"aten::fmax", extreme_of_numbers<kMaxName>},
      {"aten::fmin", extreme_of_numbers<kMinName>},
      {"aten::heaviside", heaviside},
      {"aten::hardshrink", hardshrink},
      {"aten::sign", sign},
      {"aten::softshrink", softshrink},
      {"aten::threshold", threshold},
      {"aten::celu", celu},
      {"aten::logit", logit},
      {"aten::sinc", sinc},
      {"aten::deg2rad", [](Call& c) { scaled(c, std::numbers::pi / 180); }},
      {"aten::rad2deg", [](Call& c) { scaled(c, 180 / std::numbers::pi); }},
      {"aten::log10", log10},
      {"aten::isnan", is_nan},
      {"aten::isinf", is_infinite},
      {"aten::isfinite", is_finite},
      {"aten::isposinf", is_positive_infinity},
      {"aten::isneginf", is_negative_infinity},
      {"aten::nan_to_num", nan_to_num},
      {"aten::mse_loss", mse_loss},
      {"aten::l1_loss", l1_loss},
      {"aten::smooth_l1_loss", smooth_l1_loss},
      {"aten::huber_loss", huber_loss},
      {"aten::cosine_similarity", cosine_similarity},
      {"aten::pairwise_distance", pairwise_distance},
  };
  return kRows;
}

}  // namespace tensord::jit::onnx
