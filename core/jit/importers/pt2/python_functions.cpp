// Python functions that programs apply to sizes and other numbers.

#include <algorithm>

#include "core/base/error.h"
#include "core/jit/importers/pt2/graph_reader.h"

namespace tensord::jit::pt2 {

using ops::TypeKind;

namespace {

struct Function {
  std::string_view target;
  const char* op;  // registered operator; argument types select the overload
  size_t arguments;
};

constexpr Function kFunctions[] = {
    {"_operator.add", "aten::add", 2},
    {"_operator.sub", "aten::sub", 2},
    {"_operator.mul", "aten::mul", 2},
    {"_operator.truediv", "aten::div", 2},
    {"_operator.floordiv", "aten::floordiv", 2},
    {"_operator.mod", "aten::remainder", 2},
    {"_operator.pow", "", 2},
    {"_operator.neg", "aten::neg", 1},
    {"_operator.pos", "", 1},
    {"_operator.eq", "aten::eq", 2},
    {"_operator.ne", "aten::ne", 2},
    {"_operator.lt", "aten::lt", 2},
    {"_operator.le", "aten::le", 2},
    {"_operator.gt", "aten::gt", 2},
    {"_operator.ge", "aten::ge", 2},
    {"_operator.and_", "aten::__and__", 2},
    {"_operator.or_", "aten::__or__", 2},
    {"_operator.lshift", "aten::__lshift__", 2},
    {"_operator.rshift", "aten::__rshift__", 2},
    {"math.ceil", "aten::ceil", 1},
    {"math.floor", "aten::floor", 1},
    {"math.trunc", "aten::Int", 1},
    {"math.sqrt", "aten::sqrt", 1},
    {"torch.sym_max", "prim::max", 2},
    {"torch.sym_min", "prim::min", 2},
    {"torch.sym_not", "aten::__not__", 1},
    {"torch.sym_float", "aten::Float", 1},
    {"torch.sym_int", "aten::Int", 1},
    {"torch.sym_ite", "", 3},
    {"torch.sym_sqrt", "aten::sqrt", 1},
    {"torch._sym_sqrt", "aten::sqrt", 1},
};

const Function* find_function(const std::string& target) {
  const auto found = std::ranges::find(kFunctions, std::string_view(target), &Function::target);
  return found == std::end(kFunctions) ? nullptr : &*found;
}

bool is_int(const GraphValue* value) { return value->type()->kind() == TypeKind::kInt; }

// Ints with a non-negative exponent give an int, as in Python; for sizes the exponent is a small constant.
GraphValue* power(GraphBuilder& builder, GraphValue* base, GraphValue* exponent) {
  if (!is_int(base) || !is_int(exponent)) return builder.scalar_op("aten::pow", {base, exponent});
  constexpr int64_t kMaxExponent = 16;
  const ops::Value* known = exponent->constant();
  if (!known || known->to_int() < 0 || known->to_int() > kMaxExponent) {
    fail(ErrorCode::kUnimplemented, "a power of an int is supported for exponents from 0 to ", kMaxExponent, " alone");
  }
  GraphValue* out = builder.constant(int64_t{1});
  for (int64_t i = 0; i < known->to_int(); ++i) out = builder.op("aten::mul.int", {out, base});
  return out;
}

GraphValue* choose(GraphBuilder& builder, GraphValue* condition, GraphValue* yes, GraphValue* no) {
  if (!ops::same_type(yes->type(), no->type())) {
    fail(ErrorCode::kUnimplemented, "torch.sym_ite of ", yes->type()->str(), " and ", no->type()->str(),
         " is not supported");
  }
  Node* node = builder.add(NodeKind::kIf, std::span<GraphValue* const>(&condition, 1));
  node->add_block()->add_output(yes);
  node->add_block()->add_output(no);
  return node->add_output(yes->type());
}

}  // namespace

bool is_python_function(const std::string& target) { return find_function(target) != nullptr; }

GraphValue* python_call(GraphBuilder& builder, const std::string& target, std::span<GraphValue* const> arguments) {
  const Function* function = find_function(target);
  if (!function) fail(ErrorCode::kUnimplemented, "function ", target, " is not supported");
  if (arguments.size() != function->arguments) {
    fail(ErrorCode::kDataLoss, target, " takes ", function->arguments, " arguments, not ", arguments.size());
  }
  if (target == "_operator.pow") return power(builder, arguments[0], arguments[1]);
  if (target == "_operator.pos") return arguments[0];
  if (target == "torch.sym_ite") return choose(builder, arguments[0], arguments[1], arguments[2]);
  // Ints use the operators of floats if the other argument is a float.
  GraphBuilder::Values values(arguments.begin(), arguments.end());
  const bool is_rounding = target == "math.ceil" || target == "math.floor" || target == "math.trunc";
  if (is_rounding && is_int(values[0])) return values[0];
  const bool is_same = (target == "torch.sym_int" && is_int(values[0])) ||
                       (target == "torch.sym_float" && values[0]->type()->kind() == TypeKind::kFloat);
  if (is_same) return values[0];
  if (values.size() == 1) return builder.scalar_op(function->op, {values[0]});
  // TorchScript divides ints by ints and floats by floats only.
  if (target == "_operator.truediv" && is_int(values[0]) != is_int(values[1])) {
    GraphValue*& integer = values[is_int(values[0]) ? 0 : 1];
    integer = builder.scalar_op("aten::Float", {integer});
  }
  return builder.scalar_op(function->op, {values[0], values[1]});
}

}  // namespace tensord::jit::pt2
