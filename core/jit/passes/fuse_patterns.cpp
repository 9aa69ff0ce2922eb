// fuse_patterns: replaces activations and normalizations written with plain operators by the single operator for them.
// It needs shapes and dtypes (GraphValue::known), so it runs for one input signature. The results agree up to rounding;
// forms that overflow for other inputs are not replaced. The table names operators as data; the engine of the peephole
// pass applies it.
#include <cmath>

#include "core/jit/ir/graph_builder.h"
#include "core/jit/passes/passes.h"
#include "core/jit/passes/peephole.h"
#include "core/ops/registry.h"

namespace tensord::jit {

using ops::Value;

namespace {

// ---- guards

const Tensor* shape_of(const GraphValue* value) {
  return value->known().is_strided() ? &value->known().to_tensor() : nullptr;
}
// Also checks that the result has the dtype and shape of x: a 0-D tensor of a number widens a 0-D x.
bool is_floating_x(const Match& match) {
  const Tensor *x = shape_of(match.value("x")), *result = shape_of(match.root()->output());
  return x && tensord::is_floating(x->dtype()) && result && result->dtype() == x->dtype() &&
         result->sizes() == x->sizes();
}

// The number in a constant, which may be a 0-D tensor.
std::optional<double> number_of(const GraphValue* value) {
  const Value* constant = value->constant();
  if (!constant) return std::nullopt;
  if (constant->is_strided()) {
    const Tensor& t = constant->to_tensor();
    return t.ndim() == 0 && !t.is_meta() && tensord::is_floating(t.dtype()) ? std::optional(t.item_double())
                                                                            : std::nullopt;
  }
  if (constant->is_int()) return static_cast<double>(constant->to_int());
  return constant->is_float() ? std::optional(constant->to_float()) : std::nullopt;
}
// Within the precision of a float and of a script's literal.
bool is_near(const GraphValue* value, double expected) {
  const auto number = number_of(value);
  return number && std::abs(*number - expected) <= 2e-6 * std::abs(expected);
}
struct Number {
  const char* name;
  double value;
};
bool has_numbers(const Match& match, std::initializer_list<Number> numbers) {
  for (const Number& number : numbers) {
    if (!is_near(match.value(number.name), number.value)) return false;
  }
  return is_floating_x(match);
}

constexpr double kRootHalf = 0.70710678118654752440, kRootTwoByPi = 0.79788456080286535588;
bool is_gelu_div(const Match& m) { return has_numbers(m, {{"h", 0.5}, {"one", 1}, {"s", 2 * kRootHalf}}); }
bool is_gelu_mul(const Match& m) { return has_numbers(m, {{"h", 0.5}, {"one", 1}, {"s", kRootHalf}}); }
bool is_gelu_tanh(const Match& m) {
  return has_numbers(m, {{"h", 0.5}, {"one", 1}, {"k", 0.044715}, {"c", kRootTwoByPi}});
}
bool is_gelu_tanh_product(const Match& m) { return is_gelu_tanh(m) && is_near(m.value("one2"), 1); }
bool is_gelu_tanh_cube(const Match& m) { return is_gelu_tanh(m) && is_near(m.value("three"), 3); }
bool is_relu6_of_three(const Match& m) { return has_numbers(m, {{"three", 3}, {"zero", 0}, {"six", 6}}); }
bool is_by_six(const Match& m) { return has_numbers(m, {{"by", 6}}); }
bool is_hard_div(const Match& m) { return is_relu6_of_three(m) && is_by_six(m); }
bool is_hard_div6(const Match& m) { return has_numbers(m, {{"three", 3}, {"by", 6}}); }
bool is_hard_mul(const Match& m) { return is_relu6_of_three(m) && is_near(m.value("by"), 1.0 / 6); }
bool is_hard_mul6(const Match& m) { return has_numbers(m, {{"three", 3}, {"by", 1.0 / 6}}); }

// ---- rewrites

GraphValue* add_constant(const Match& match, Value value) {
  return GraphBuilder(match.root()).constant(std::move(value));
}

// Adds a call before the root that gives the same result as the root.
GraphValue* add_call(const Match& match, const char* name, const std::vector<GraphValue*>& inputs) {
  const ops::Op* op = ops::find_op(name);
  if (!op) return nullptr;
  const Node* node = GraphBuilder(match.root()).call(*op, inputs);
  node->output()->set_known(match.root()->output()->known());
  return node->output();
}

GraphValue* make_gelu_tanh(const Match& match) {
  return add_call(match, "aten::gelu", {match.value("x"), add_constant(match, std::string("tanh"))});
}

// Whether the value is the list [-1] or the index of the last dimension.
bool is_last_dim(const GraphValue* dims, int64_t ndim) {
  const Value known = dims->constant() ? *dims->constant() : dims->known();
  const auto is_last = [&](const Value& dim) {
    return dim.is_int() && (dim.to_int() == -1 || dim.to_int() == ndim - 1);
  };
  if (!known.is_list()) return is_last(known);
  return known.to_list()->items.size() == 1 && is_last(known.to_list()->items[0]);
}

// x, if "dims", "dims2", … are all its last dimension.
const Tensor* rows_of(const Match& match, std::initializer_list<const char*> dims) {
  const Tensor* x = shape_of(match.value("x"));
  if (!is_floating_x(match) || x->ndim() == 0 || x->sizes().back() == 0) return nullptr;
  for (const char* name : dims) {
    if (!is_last_dim(match.value(name), x->ndim())) return nullptr;
  }
  return x;
}

GraphValue* layer_norm_of(const Match& match, const Tensor& x, std::optional<double> eps) {
  if (!eps || !(*eps >= 0)) return nullptr;
  GraphValue* shape = add_constant(match, ops::make_int_list(Dims{x.sizes().back()}));
  GraphValue* none = add_constant(match, Value());
  return add_call(match, "aten::layer_norm", {match.value("x"), shape, none, none, add_constant(match, *eps)});
}
GraphValue* make_layer_norm(const Match& match) {
  const Tensor* x = rows_of(match, {"dims", "dims2"});
  if (!x) return nullptr;
  return layer_norm_of(match, *x, number_of(match.value("eps")));
}
GraphValue* make_layer_norm_square(const Match& match) {
  return is_near(match.value("two"), 2) ? make_layer_norm(match) : nullptr;
}

// layer_norm(x) * w + b, where w and b have the length of a row of x.
bool is_row(const Match& match, const char* name, const Tensor& x) {
  const Tensor* row = shape_of(match.value(name));
  return row && row->dtype() == x.dtype() && row->ndim() == 1 && row->numel() == x.sizes().back();
}
GraphValue* make_affine(const Match& match) {
  const Tensor* x = shape_of(match.value("x"));
  if (!x || x->ndim() == 0 || !is_row(match, "w", *x) || !is_row(match, "b", *x)) return nullptr;
  const Value shape =
      match.value("shape")->constant() ? *match.value("shape")->constant() : match.value("shape")->known();
  if (!shape.is_list() || shape.to_list()->items.size() != 1) return nullptr;
  return add_call(match, "aten::layer_norm",
                  {match.value("x"), match.value("shape"), match.value("w"), match.value("b"), match.value("eps")});
}

GraphValue* make_softmax(const Match& match) {
  const Tensor* x = rows_of(match, {"dims", "dims2"});
  if (!x) return nullptr;
  return add_call(match, "aten::softmax.int", {match.value("x"), add_constant(match, int64_t{-1})});
}

// ---- the table

#define ERF_DIV "aten::add.*~(aten::erf(aten::div.*(x, s)), one)"
#define ERF_MUL "aten::add.*~(aten::erf(aten::mul.*~(x, s)), one)"
// tanh(c (x + k x^3)) with the spellings of the cube, and tanh(c x (1 + k x x)).
#define TANH_OF(CUBE) "aten::add.*~(aten::tanh(aten::mul.*~(aten::add.*~(x, aten::mul.*~(" CUBE ", k)), c)), one)"
#define TANH_POW TANH_OF("aten::pow.Tensor_Scalar(x, three)")
#define TANH_CUBE TANH_OF("aten::mul.*~(aten::mul.*(x, x), x)")
#define TANH_PRODUCT                                          \
  "aten::add.*~(aten::tanh(aten::mul.*~(aten::mul.*~(x, c), " \
  "aten::add.*~(aten::mul.*~(aten::mul.*~(x, k), x), one2))), one)"
// h x y in all orders.
#define HALF_X_TIMES(NAME, Y, REPLACEMENT, ...)                                            \
  {NAME ", 1", "aten::mul.*~(aten::mul.*~(x, h), " Y ")", REPLACEMENT, __VA_ARGS__},       \
      {NAME ", 2", "aten::mul.*~(aten::mul.*~(x, " Y "), h)", REPLACEMENT, __VA_ARGS__}, { \
    NAME ", 3", "aten::mul.*~(x, aten::mul.*~(" Y ", h))", REPLACEMENT, __VA_ARGS__        \
  }
#define CLAMP_THREE(FUNCTION) FUNCTION "(aten::add.*~(x, three), zero, six)"
#define RELU6_THREE "aten::relu6(aten::add.*~(x, three))"
#define CENTERED "d=aten::sub.Tensor(x, aten::mean.dim(x, dims, True))"
#define VARIANCE_POW "aten::mean.dim(aten::pow.Tensor_Scalar(d, two), dims2, True)"
#define VARIANCE_MUL "aten::mean.dim(aten::mul.Tensor(d, d), dims2, True)"
#define VARIANCE_SQUARE "aten::mean.dim(aten::square(d), dims2, True)"
#define VARIANCE_VAR "aten::var.dim(x, dims2, False, True)"
// (x - mean) / sqrt(variance + eps), also with rsqrt.
#define NORMAL(NAME, VARIANCE, MAKE)                                                                                  \
  {NAME ", div", "aten::div.Tensor(" CENTERED ", aten::sqrt(aten::add.Scalar(" VARIANCE ", eps)))", nullptr, nullptr, \
   MAKE},                                                                                                             \
  {                                                                                                                   \
    NAME ", rsqrt", "aten::mul.Tensor~(" CENTERED ", aten::rsqrt(aten::add.Scalar(" VARIANCE ", eps)))", nullptr,     \
        nullptr, MAKE                                                                                                 \
  }

const PeepholeRule kPatterns[] = {
    {"silu", "aten::mul.Tensor~(x, aten::sigmoid(x))", "aten::silu(x)", is_floating_x},
    {"mish", "aten::mul.Tensor~(x, aten::tanh(aten::softplus(x)))", "aten::mish(x)", is_floating_x},
    HALF_X_TIMES("gelu, erf of a quotient", ERF_DIV, "aten::gelu(x)", is_gelu_div),
    HALF_X_TIMES("gelu, erf of a product", ERF_MUL, "aten::gelu(x)", is_gelu_mul),
    HALF_X_TIMES("gelu, tanh with pow", TANH_POW, nullptr, is_gelu_tanh_cube, make_gelu_tanh),
    HALF_X_TIMES("gelu, tanh with a cube", TANH_CUBE, nullptr, is_gelu_tanh, make_gelu_tanh),
    HALF_X_TIMES("gelu, tanh with a product", TANH_PRODUCT, nullptr, is_gelu_tanh_product, make_gelu_tanh),
    {"hardsigmoid, clamp", "aten::div.*(" CLAMP_THREE("aten::clamp") ", by)", "aten::hardsigmoid(x)", is_hard_div},
    {"hardsigmoid, hardtanh", "aten::div.*(" CLAMP_THREE("aten::hardtanh") ", by)", "aten::hardsigmoid(x)",
     is_hard_div},
    {"hardsigmoid, relu6", "aten::div.*(" RELU6_THREE ", by)", "aten::hardsigmoid(x)", is_hard_div6},
    {"hardsigmoid, clamp by product", "aten::mul.*~(" CLAMP_THREE("aten::clamp") ", by)", "aten::hardsigmoid(x)",
     is_hard_mul},
    {"hardsigmoid, hardtanh by product", "aten::mul.*~(" CLAMP_THREE("aten::hardtanh") ", by)", "aten::hardsigmoid(x)",
     is_hard_mul},
    {"hardsigmoid, relu6 by product", "aten::mul.*~(" RELU6_THREE ", by)", "aten::hardsigmoid(x)", is_hard_mul6},
    {"hardswish", "aten::mul.Tensor~(x, aten::hardsigmoid(x))", "aten::hardswish(x)", is_floating_x},
    {"hardswish, relu6", "aten::div.*(aten::mul.Tensor~(x, " RELU6_THREE "), by)", "aten::hardswish(x)", is_hard_div6},
    {"hardswish, clamp", "aten::div.*(aten::mul.Tensor~(x, " CLAMP_THREE("aten::clamp") "), by)", "aten::hardswish(x)",
     is_hard_div},
    {"hardswish, hardtanh", "aten::div.*(aten::mul.Tensor~(x, " CLAMP_THREE("aten::hardtanh") "), by)",
     "aten::hardswish(x)", is_hard_div},
    NORMAL("layer_norm, pow", VARIANCE_POW, make_layer_norm_square),
    NORMAL("layer_norm, product", VARIANCE_MUL, make_layer_norm),
    NORMAL("layer_norm, square", VARIANCE_SQUARE, make_layer_norm),
    NORMAL("layer_norm, var", VARIANCE_VAR, make_layer_norm),
    {"layer_norm, affine", "aten::add.Tensor~(aten::mul.Tensor~(aten::layer_norm(x, shape, None, None, eps, _), w), b)",
     nullptr, nullptr, make_affine},
    {"softmax",
     "aten::div.Tensor(e=aten::exp(aten::sub.Tensor(x, aten::amax(x, dims, True))), "
     "aten::sum.dim_IntList(e, dims2, True))",
     nullptr, nullptr, make_softmax},
};

}  // namespace

bool fuse_patterns(Graph& graph, PassContext& context) {
  static const RuleTable table(kPatterns);
  return table.apply(graph, context);
}

}  // namespace tensord::jit
