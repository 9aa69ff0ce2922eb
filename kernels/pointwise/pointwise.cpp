// Registers the lines of kernels/pointwise_*.def that follow a family: schemas, infer, kernels and gradients.
#include "kernels/pointwise/pointwise.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "core/ops/attributes/written.h"
#include "kernels/expr/expr.h"
#include "kernels/pointwise/divisor.h"

namespace tensord::kernels {

using ops::KernelContext;
using ops::Scalar;
using ops::WritesInto;

namespace {

// Integer division by zero is an error, found before any element is written.
void check_divisor(const PointwiseCall& call) {
  if (!call.checks_divisor()) return;
  const Tensor* divisor = call.tensor(1);
  bool has_zero = false;
  if (divisor == nullptr) {
    has_zero = call.operands[1].number.to_int() == 0;
  } else if (divisor->device().kind == DeviceKind::kCPU) {
    has_zero = has_zero_element(*divisor);
  }
  check(!has_zero, "ZeroDivisionError");
}

}  // namespace

void run_pointwise(const KernelContext& context, const PointwiseCall& call, Tensor& out) {
  check_divisor(call);
  if (context.device.is_host()) return run_pointwise_cpu(call, out);
  run_pointwise_cuda(context, call, out);
}

namespace {

// The names in a gradient formula: g, y, a, b, alpha, and the numbers p0 … p2, which are the Scalar arguments in schema
// order.
constexpr size_t kGradOperands = 8;
using GradExpr = gradient::GradientFormula;

struct Line {
  const char* name;
  Formula formula;
  TypeClass type_class;
  const char* text;
  GradExpr grad_a = nullptr, grad_b = nullptr;
  const char* grad_text = "";
  WritesInto::DTypes targets = WritesInto::kAnyDType;

  DType compute(Operands operands) const { return compute_dtype(name, type_class, operands); }
  ops::TensorMeta infer(Operands operands) const {
    const DType dtype = compute(operands);
    return infer_pointwise(operands, type_class == TypeClass::kCompare ? DType::kBool : dtype);
  }
  PointwiseCall call(Operands operands, Numbers numbers) const {
    return PointwiseCall(formula, compute(operands), operands, numbers);
  }
};

// The gradient of an operator whose Tensor arguments are a (and b). The Scalar arguments after them are p0 … p2; the
// last one is alpha where the family has it.
gradient::GradientFn make_gradient(const Line& line) {
  if (line.grad_a == nullptr && line.grad_b == nullptr) return nullptr;
  return [line](const ops::GradArgs& args) {
    std::vector<Tensor> gradients(args.inputs.size());
    if (!args.grad_outputs[0].defined()) return gradients;
    std::array<gradient::Expr, kGradOperands> operands;
    operands[0] = args.grad_outputs[0];
    operands[1] = args.outputs[0];
    operands[2] = args.inputs[0];
    if (args.inputs.size() > 1) operands[3] = args.inputs[1];
    if (!args.inputs.back().is_tensor()) operands[4] = args.inputs.back();
    for (size_t i = 1; i < args.inputs.size() && i < 4; ++i) {
      if (!args.inputs[i].is_tensor()) operands[4 + i] = args.inputs[i];
    }
    const GradExpr formulas[] = {line.grad_a, line.grad_b};
    for (size_t i = 0; i < 2 && i < args.inputs.size(); ++i) {
      if (formulas[i] == nullptr || !args.inputs[i].is_tensor() || !args.needs(i)) continue;
      const Tensor& input = args.inputs[i].to_tensor();
      if (is_floating(input.dtype()) || is_complex(input.dtype()))
        gradients[i] = gradient::evaluate(formulas[i], operands, input);
    }
    return gradients;
  };
}

// Whether a gradient's text names this operand.
bool names_operand(std::string_view text, char name) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t i = 0; i < text.size(); ++i) {
    const bool starts = i == 0 || !is_word(text[i - 1]);
    if (text[i] == name && starts && (i + 1 == text.size() || !is_word(text[i + 1]))) return true;
  }
  return false;
}

// "self: other; other: self, result", as far as the formulas read them.
std::string saved_operands(const ops::OpBuilder& builder, const Line& line) {
  std::string saved;
  const auto& arguments = builder.schema().arguments;
  const auto is_tensor = [&](size_t i) {
    return i < arguments.size() && arguments[i].type->kind() == ops::TypeKind::kTensor;
  };
  std::string_view rest = line.grad_text;
  for (size_t of = 0; of < 2; ++of) {
    const std::string_view text = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), text.size() + 1));
    if (!is_tensor(of)) continue;
    saved += (saved.empty() ? "" : "; ") + arguments[of].name + ": ";
    std::string names;
    const auto add = [&](std::string_view name) { names += (names.empty() ? "" : ", ") + std::string(name); };
    for (size_t i = 0; i < 2; ++i) {
      if (is_tensor(i) && names_operand(text, "ab"[i])) add(arguments[i].name);
    }
    if (names_operand(text, 'y')) add("result");
    saved += names;
  }
  return saved;
}

void finish(ops::OpBuilder& builder, const Line& line) {
  builder.pointwise().keeps_layout().formula(line.text);
  if (gradient::GradientFn gradient = make_gradient(line)) {
    builder.gradient(std::move(gradient)).saves(saved_operands(builder, line).c_str());
  }
  if (line.targets != WritesInto::kAnyDType) builder.set<WritesInto>(line.targets);
}

// "aten::NAME.OVERLOAD".
const char* name_of_op(const Line& line, std::string_view overload = "") {
  return keep_text(concat("aten::", line.name, overload.empty() ? "" : ".", overload));
}

void add_unary(const Line& line) {
  const char* const op = name_of_op(line);
  ops::OpBuilder builder(op, __FILE__, __LINE__);
  builder.infer([line](const Tensor& a) { return line.infer(std::array{Operand(a)}); });
  finish(builder, line);
  add_pointwise_kernel(op, [line](const Tensor& a) { return line.call(std::array{Operand(a)}, {}); });
}

void check_numbers(const Line& line, DType dtype, const Scalar& p0) {
  const double number = p0.to_double();
  if (line.formula == Formula::softshrink)
    check(number >= 0, "lambda must be greater or equal to 0, but found to be ", number, ".");
  if (line.formula == Formula::celu) check(number != 0, "ZeroDivisionError: alpha cannot be 0 for CELU");
  if (line.formula == Formula::hardtanh)
    check(dtype != DType::kUInt8 || number >= 0, "cannot do hardtanh on an unsigned type with negative limits");
}

void add_unary_numbers(const Line& line) {
  const char* const op = name_of_op(line);
  ops::OpBuilder builder(op, __FILE__, __LINE__);
  const size_t count = builder.schema().arguments.size() - 1;
  if (count == 1) {
    builder.infer([line](const Tensor& a, Scalar p0) {
      check_numbers(line, a.dtype(), p0);
      return line.infer(std::array{Operand(a)});
    });
    add_pointwise_kernel(op, [line](const Tensor& a, Scalar p0) { return line.call(std::array{Operand(a)}, {p0}); });
  } else if (count == 2) {
    builder.infer([line](const Tensor& a, Scalar p0, Scalar) {
      check_numbers(line, a.dtype(), p0);
      return line.infer(std::array{Operand(a)});
    });
    add_pointwise_kernel(op, [line](const Tensor& a, Scalar p0, Scalar p1) {
      if (line.formula == Formula::hardtanh && is_floating(a.dtype()) && has_nan({p0, p1})) return nan_of(a, a.dtype());
      return line.call(std::array{Operand(a)}, {p0, p1});
    });
  } else {
    builder.infer([line](const Tensor& a, Scalar, Scalar, Scalar) { return line.infer(std::array{Operand(a)}); });
    add_pointwise_kernel(op, [line](const Tensor& a, Scalar p0, Scalar p1, Scalar p2) {
      return line.call(std::array{Operand(a)}, {p0, p1, p2});
    });
  }
  finish(builder, line);
}

void add_binary(const Line& line, std::string_view overload = "") {
  const char* const op = name_of_op(line, overload);
  ops::OpBuilder builder(op, __FILE__, __LINE__);
  builder.infer([line](const Tensor& a, const Tensor& b) {
    check(line.formula != Formula::heaviside || a.dtype() == b.dtype(),
          "heaviside is not yet implemented for tensors with different dtypes.");
    return line.infer(std::array{Operand(a), Operand(b)});
  });
  finish(builder, line);
  add_pointwise_kernel(op, [line](const Tensor& a, const Tensor& b) {
    return line.call(std::array{Operand(a), Operand(b)}, {});
  });
}

void add_binary_tensor_scalar(const Line& line, std::string_view scalar_overload = "Scalar") {
  add_binary(line, "Tensor");
  const char* const op = name_of_op(line, scalar_overload);
  ops::OpBuilder builder(op, __FILE__, __LINE__);
  builder.infer([line](const Tensor& a, Scalar b) { return line.infer(std::array{Operand(a), Operand(b)}); });
  finish(builder, line);
  add_pointwise_kernel(op, [line](const Tensor& a, Scalar b) {
    return line.call(std::array{Operand(a), Operand(b)}, {});
  });
}

void check_alpha(const Line& line, DType compute, const Scalar& alpha) {
  check(!alpha.is_float() || is_floating(compute), line.name,
        ": For integral input tensors, argument alpha must not be a floating point number.");
  check(!alpha.is_bool() || compute == DType::kBool, line.name, ": Boolean alpha only supported for Boolean results.");
}

// Between bools a factor is a bool too: any number but 0 is True.
PointwiseCall call_with_alpha(const Line& line, Operands operands, const Scalar& alpha) {
  PointwiseCall call = line.call(operands, {alpha});
  if (call.compute == DType::kBool) call.numbers = Numbers{Scalar(alpha.to_bool())};
  return call;
}

void add_binary_alpha(const Line& line) {
  const auto add_overload = [&line]<class B>(const char* op, B) {
    ops::OpBuilder builder(op, __FILE__, __LINE__);
    builder.infer([line](const Tensor& a, B b, Scalar alpha) {
      const std::array operands{Operand(a), Operand(b)};
      check_alpha(line, line.compute(operands), alpha);
      return line.infer(operands);
    });
    finish(builder, line);
    add_pointwise_kernel(op, [line](const Tensor& a, B b, Scalar alpha) {
      return call_with_alpha(line, std::array{Operand(a), Operand(b)}, alpha);
    });
  };
  add_overload.template operator()<const Tensor&>(name_of_op(line, "Tensor"), Tensor());
  add_overload.template operator()<Scalar>(name_of_op(line, "Scalar"), Scalar(0));
}

// The names that a gradient formula may use.
#define GRADIENT(...)                                                                                          \
  [](std::span<const gradient::Expr> operands) -> gradient::Expr {                                             \
    using namespace gradient;                                                                                  \
    [[maybe_unused]] const Expr &g = operands[0], &y = operands[1], &a = operands[2], &b = operands[3],        \
                                &alpha = operands[4], &p0 = operands[5], &p1 = operands[6], &p2 = operands[7]; \
    return __VA_ARGS__;                                                                                        \
  }
#define ZERO zeros(g)
// Lets a table say NONE for "no gradient".
#define NONE (gradient::Expr())

#define FORMULA(NAME, CLASS, EXPRESSION)
#define LINE(NAME, CLASS, EXPRESSION, GRAD_A, GRAD_B, GRAD_TEXT, ...)            \
  Line {                                                                         \
#NAME, Formula::NAME, TypeClass::k##CLASS, #EXPRESSION,                      \
        TypeClass::k##CLASS == TypeClass::kCompare ? nullptr : GradExpr(GRAD_A), \
        TypeClass::k##CLASS == TypeClass::kCompare ? nullptr : GradExpr(GRAD_B), \
        GRAD_TEXT __VA_OPT__(, WritesInto::k##__VA_ARGS__)                       \
  }
#define UNARY(NAME, CLASS, EXPRESSION, GRAD, ...) \
  add_unary(LINE(NAME, CLASS, EXPRESSION, GRADIENT(GRAD), nullptr, #GRAD __VA_OPT__(, ) __VA_ARGS__));
#define UNARY_NUMBERS(NAME, CLASS, EXPRESSION, GRAD, ...) \
  add_unary_numbers(LINE(NAME, CLASS, EXPRESSION, GRADIENT(GRAD), nullptr, #GRAD __VA_OPT__(, ) __VA_ARGS__));
#define BINARY(NAME, CLASS, EXPRESSION, GRAD_A, GRAD_B, ...)                   \
  add_binary(LINE(NAME, CLASS, EXPRESSION, GRADIENT(GRAD_A), GRADIENT(GRAD_B), \
                  #GRAD_A "\n" #GRAD_B __VA_OPT__(, ) __VA_ARGS__));
#define BINARY_TENSOR_SCALAR(NAME, CLASS, EXPRESSION, GRAD_A, GRAD_B) \
  add_binary_tensor_scalar(LINE(NAME, CLASS, EXPRESSION, GRADIENT(GRAD_A), GRADIENT(GRAD_B), #GRAD_A "\n" #GRAD_B));
#define BINARY_SHIFT(NAME, CLASS, EXPRESSION, GRAD_A, GRAD_B)                                                       \
  add_binary_tensor_scalar(LINE(NAME, CLASS, EXPRESSION, GRADIENT(GRAD_A), GRADIENT(GRAD_B), #GRAD_A "\n" #GRAD_B), \
                           "Tensor_Scalar");
#define BINARY_ALPHA(NAME, CLASS, EXPRESSION, GRAD_A, GRAD_B) \
  add_binary_alpha(LINE(NAME, CLASS, EXPRESSION, GRADIENT(GRAD_A), GRADIENT(GRAD_B), #GRAD_A "\n" #GRAD_B));

bool register_arith() {
#include "kernels/pointwise/arith.def"
  return true;
}
bool register_math() {
#include "kernels/pointwise/math.def"
  return true;
}
bool register_activation() {
#include "kernels/pointwise/activation.def"
  return true;
}
// pointwise_prepare.cpp has its own list.
#undef GRADIENT
#undef ZERO
#undef NONE
#undef FORMULA
#undef LINE
#undef UNARY
#undef UNARY_NUMBERS
#undef BINARY
#undef BINARY_TENSOR_SCALAR
#undef BINARY_SHIFT
#undef BINARY_ALPHA
[[maybe_unused]] const bool pointwise_registered = register_arith() && register_math() && register_activation();

}  // namespace
}  // namespace tensord::kernels
