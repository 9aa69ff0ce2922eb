#include <algorithm>
#include <utility>

#include "core/jit/frontend/function_emitter.h"
#include "core/jit/ir/missing_operators.h"
#include "core/jit/ir/refusals.h"
#include "core/ops/method_call.h"
#include "core/ops/registry.h"

namespace tensord::jit {

using ops::TypeKind;
using ops::TypePtr;

namespace {

std::string describe_arguments(std::span<GraphValue* const> positional, std::span<const NamedValue> keywords) {
  std::string out;
  for (const GraphValue* value : positional) out += (out.empty() ? "" : ", ") + value->type()->str();
  for (const NamedValue& keyword : keywords) {
    out += (out.empty() ? "" : ", ") + std::string(keyword.name) + "=" + keyword.value->type()->str();
  }
  return out;
}

bool holds_objects(const ops::Type& type) {
  if (type.kind() == TypeKind::kClass || type.kind() == TypeKind::kInterface || type.kind() == TypeKind::kAny)
    return true;
  return std::any_of(type.contained().begin(), type.contained().end(),
                     [](const TypePtr& member) { return holds_objects(*member); });
}

bool may_hold_objects(const GraphValue* value) { return holds_objects(*value->type()); }

}  // namespace

FunctionEmitter::Arguments FunctionEmitter::arguments(const Expr& expr) {
  Arguments out;
  for (size_t i = 1; i < expr.items.size(); ++i) out.positional.push_back(value(*expr.items[i]));
  for (const Keyword& keyword : expr.keywords) out.keywords.push_back({keyword.name, value(*keyword.value)});
  place_ = expr.begin;
  return out;
}

Binding FunctionEmitter::call(const Expr& expr, const TypePtr& hint) {
  const Expr& callee = *expr.items[0];
  if (callee.kind == ExprKind::kAttribute && static_path(callee).empty()) {
    // Handled here, so that "x.m(…)" does not read m as an attribute first.
    return method_call(value(*callee.items[0]), std::string(callee.text), expr, hint);
  }
  const Binding target = expression(callee);
  place_ = expr.begin;
  switch (target.kind) {
    case Binding::Kind::kBuiltin: return builtin(target.name, expr, hint);
    case Binding::Kind::kOperator: return call_operator(target.name, arguments(expr), expr);
    case Binding::Kind::kFunction: return Binding::of(call_function(target.name, arguments(expr), expr));
    case Binding::Kind::kClass: return Binding::of(construct(target.name, arguments(expr), expr));
    case Binding::Kind::kNew: {
      const TypePtr type = declarations_.find_type(target.name);
      if (!type || type->kind() != TypeKind::kClass) fail(expr, "'" + target.name + "' is not a class");
      return Binding::of(add(NodeKind::kCreateObject, {}, type));
    }
    case Binding::Kind::kMethod: return method_call(target.value, target.name, expr, hint);
    case Binding::Kind::kValue:
      if (target.value->type()->kind() == TypeKind::kClass || target.value->type()->kind() == TypeKind::kInterface) {
        const ops::ClassType* type = declarations_.class_of(target.value->type());
        const bool is_module = !type || type->is_module();
        return Binding::of(call_method(target.value, is_module ? "forward" : "__call__", arguments(expr), expr));
      }
      [[fallthrough]];
    default: fail(expr, "a value of type " + as_value(target, callee)->type()->str() + " cannot be called");
  }
}

// ---- operators

GraphValue* FunctionEmitter::number_of(GraphValue* other) {
  const ops::Value* known = other->constant();
  if (!known || !known->is_strided()) return nullptr;
  const Tensor& tensor = known->to_tensor();
  return tensor.ndim() == 0 && tensor.dtype() != DType::kBool ? constant(ops::Value(known->to_scalar())) : nullptr;
}

// Tracing saves "x + 1e-6" as a sum with a 0-D float64 tensor. PyTorch's executor turns such a constant back into a
// number (canonicalize_ops), which has lower priority in type promotion. Without the same step a float32 result would
// become float64.
FunctionEmitter::Arguments FunctionEmitter::with_numbers(const std::string& name, Arguments arguments) {
  if (name != "aten::add" && name != "aten::sub" && name != "aten::mul" && name != "aten::div") return arguments;
  if (arguments.positional.empty() || arguments.positional[0]->type()->kind() != TypeKind::kTensor) return arguments;
  for (const NamedValue& keyword : arguments.keywords) {
    if (keyword.name == "rounding_mode" || keyword.name == "out") return arguments;
  }
  if (arguments.positional.size() > 1) {
    if (GraphValue* number = number_of(arguments.positional[1])) arguments.positional[1] = number;
  }
  for (NamedValue& keyword : arguments.keywords) {
    GraphValue* number = keyword.name == "other" ? number_of(keyword.value) : nullptr;
    if (number) keyword.value = number;
  }
  return arguments;
}

// The operator that a name means in an archive of an older version; this affects division and full.
std::string FunctionEmitter::upgraded(const std::string& name, const Arguments& arguments) const {
  const int64_t version = declarations_.version();
  const bool is_division = name == "aten::div" || name == "aten::div_";
  if ((version < 5 && name == "aten::full") || (version < 4 && is_division && !arguments.positional.empty() &&
                                                arguments.positional[0]->type()->kind() == TypeKind::kTensor)) {
    return "upgraders::" + name.substr(6);
  }
  return name;
}

// How far a match deviates from the schema: 0 exact, 1 gathers arguments into a list, 2 casts. Thus min(a, b) prefers
// the schema of two numbers to that of a list of numbers.
static int detours(const BoundCall& call) {
  const bool gathers = std::any_of(call.arguments.begin(), call.arguments.end(),
                                   [](const BoundArgument& argument) { return argument.is_gathered; });
  return call.has_cast ? 2 : gathers ? 1 : 0;
}

Binding FunctionEmitter::call_operator(const std::string& written, const Arguments& given, const Expr& at) {
  if (raised_) return Binding::of(unreachable());
  const std::string name = upgraded(written, given);
  const Arguments arguments = with_numbers(name, given);
  std::span<const ops::Op* const> candidates = ops::find_overloads(name);
  if (name == "aten::wait" && arguments.positional.size() == 1) return Binding::of(wait(arguments.positional[0], at));
  // Python's abs, min and max are prim operators for numbers and aten operators for tensors.
  if (name == "prim::abs" || name == "prim::min" || name == "prim::max") {
    const bool has_tensor = std::any_of(arguments.positional.begin(), arguments.positional.end(),
                                        [](GraphValue* value) { return value->type()->kind() == TypeKind::kTensor; });
    if (has_tensor) candidates = ops::find_overloads("aten::" + name.substr(6));
  }
  // Some operators of prim are also spelled "torch.x".
  if (candidates.empty() && name.starts_with("aten::")) candidates = ops::find_overloads("prim::" + name.substr(6));
  if (candidates.empty()) return unsupported_operator("operator " + name + " is not supported", at);
  const ops::Op* chosen = nullptr;
  std::optional<BoundCall> chosen_call;
  for (const ops::Op* op : candidates) {
    std::optional<BoundCall> bound = bind_call(op->schema, arguments.positional, arguments.keywords);
    if (!bound || (chosen && detours(*bound) >= detours(*chosen_call))) continue;
    chosen = op;
    chosen_call = std::move(bound);
    if (detours(*chosen_call) == 0) break;
  }
  if (!chosen) {
    std::string message = concat("no overload of ", name, " takes (",
                                 describe_arguments(arguments.positional, arguments.keywords), "); candidates:");
    for (const ops::Op* op : candidates) {
      std::string reason;
      bind_call(op->schema, arguments.positional, arguments.keywords, &reason);
      message += "\n  " + op->schema.str() + "\n    " + reason;
    }
    return unsupported_operator(message, at);
  }
  place_ = at.begin;
  return emit_operator(*chosen, *chosen_call);
}

// Saved code contains branches that a model never takes (all modes of interpolate, the fast path of attention). An
// unsupported operator inside a branch therefore throws only when the code runs. `missing_operators` lists these
// operators.
Binding FunctionEmitter::unsupported_operator(const std::string& message, const Expr& at) {
  if (branch_depth_ == 0) {
    // A later error may only be a consequence of the unknown result.
    const bool may_follow = std::exchange(has_refused_, true) && !message.starts_with("operator ");
    if (!may_follow) refuse(ErrorCode::kUnimplemented, message, at);
    return Binding::of(unreachable());
  }
  place_ = at.begin;
  call_operator(kMissingOperator, {{constant(message.substr(0, message.find("; candidates:")))}, {}}, at);
  return Binding::of(unreachable());
}

// Throws, unless the emitter collects all errors.
void FunctionEmitter::refuse(ErrorCode code, const std::string& message, const Expr& at) const {
  try {
    tree_.source.fail(code, at.begin, message);
  } catch (const Error& error) {
    if (!collect_refusal(error.what())) throw;
  }
}

FunctionEmitter::Values FunctionEmitter::bound_values(const ops::Schema& schema, const BoundCall& bound,
                                                      bool fresh_defaults) {
  Values out;
  for (size_t i = 0; i < bound.arguments.size(); ++i) {
    const ops::Argument& parameter = schema.arguments[i];
    const BoundArgument& argument = bound.arguments[i];
    if (argument.is_gathered) {
      const TypePtr& type = parameter.type->kind() == TypeKind::kOptional ? parameter.type->element() : parameter.type;
      out.push_back(add(NodeKind::kListConstruct, argument.rest, type));
    } else if (argument.value) {
      out.push_back(convert(argument.value, parameter.type, argument.conversion, parameter.fixed_list_size));
    } else {
      const ops::Value& value = *parameter.default_value;
      const bool keeps_type = parameter.type->kind() != TypeKind::kNumber && parameter.type->kind() != TypeKind::kVar;
      out.push_back(fresh_defaults ? materialize(value, parameter.type)
                                   : constant(value, keeps_type ? parameter.type : nullptr));
    }
  }
  out.insert(out.end(), bound.varargs.begin(), bound.varargs.end());
  return out;
}

Binding FunctionEmitter::emit_operator(const ops::Op& op, const BoundCall& bound) {
  const Values inputs = bound_values(op.schema, bound, false);
  const bool calls = ops::calls_methods(op) && std::any_of(inputs.begin(), inputs.end(), may_hold_objects);
  if (calls) {
    const TypePtr result = op.schema.returns.empty() ? ops::none_type() : inputs[0]->type();
    return Binding::of(add(NodeKind::kCallFunction, inputs, result, op.schema.full_name()));
  }
  Node* node = add(graph_->create(op, inputs));
  raised_ = raised_ || op.schema.name == "prim::RaiseException" || op.schema.name == kMissingOperator;
  Binding out;
  if (node->outputs().size() == 1) return Binding::of(node->output());
  out.kind = Binding::Kind::kMany;
  out.values.assign(node->outputs().begin(), node->outputs().end());
  return out;
}

// ---- functions and methods

TypePtr FunctionEmitter::return_type(const Signature& signature) const {
  return signature.has_return_type ? signature.schema.returns.front().type : return_type_of_(signature.name);
}

GraphValue* FunctionEmitter::call_function(const std::string& name, const Arguments& arguments, const Expr& at) {
  if (raised_) return unreachable();
  const Signature* signature = declarations_.find_signature(name);
  if (!signature) fail(at, "function '" + name + "' is not defined");
  std::string reason;
  const auto bound = bind_call(signature->schema, arguments.positional, arguments.keywords, &reason);
  if (!bound) fail(at, name + ": " + reason);
  return add(NodeKind::kCallFunction, bound_values(signature->schema, *bound, true), return_type(*signature), name);
}

GraphValue* FunctionEmitter::call_method(GraphValue* object, std::string_view name, Arguments arguments,
                                         const Expr& at) {
  if (raised_) return unreachable();
  const std::string method(name);
  const TypePtr& type = object->type();
  const Signature* signature = type->kind() == TypeKind::kClass || type->kind() == TypeKind::kInterface
                                   ? declarations_.find_signature(type->name() + "." + method)
                                   : nullptr;
  if (!signature) fail(at, "a value of type " + type->str() + " has no method '" + method + "'");
  arguments.positional.insert(arguments.positional.begin(), object);
  // The self of an interface's method has no type annotation.
  ops::Schema schema = signature->schema;
  if (schema.arguments.empty()) fail(at, "method '" + method + "' takes no self");
  schema.arguments.front().type = type;
  std::string reason;
  const auto bound = bind_call(schema, arguments.positional, arguments.keywords, &reason);
  if (!bound) fail(at, type->str() + "." + method + ": " + reason);
  return add(NodeKind::kCallMethod, bound_values(schema, *bound, true), return_type(*signature), method);
}

Binding FunctionEmitter::method_call(GraphValue* object, const std::string& name, const Expr& expr,
                                     const TypePtr& hint) {
  const TypePtr& type = object->type();
  const bool is_object = type->kind() == TypeKind::kClass || type->kind() == TypeKind::kInterface;
  if (is_object) {
    if (!declarations_.find_signature(type->name() + "." + name) && type->kind() == TypeKind::kClass) {
      // Calling an attribute calls a submodule; only hand-written code does this.
      if (GraphValue* callee = class_attribute(object, name, expr))
        return Binding::of(call_method(callee, "forward", arguments(expr), expr));
    }
    return Binding::of(call_method(object, name, arguments(expr), expr));
  }
  if (type->kind() == TypeKind::kOpaque) {
    tree_.source.fail(ErrorCode::kUnimplemented, expr.begin,
                      "method '" + name + "' of " + type->str() + " is not supported");
  }
  if (name == "tolist") return Binding::of(to_list(object, hint, expr));
  Arguments all = arguments(expr);
  all.positional.insert(all.positional.begin(), object);
  return call_operator("aten::" + name, all, expr);
}

GraphValue* FunctionEmitter::construct(const std::string& class_name, const Arguments& arguments, const Expr& at) {
  if (raised_) return unreachable();
  const TypePtr type = declarations_.find_type(class_name);
  if (!type) fail(at, "class '" + class_name + "' is not defined");
  if (type->kind() == TypeKind::kClass) {
    GraphValue* object = add(NodeKind::kCreateObject, {}, type);
    call_method(object, "__init__", arguments, at);
    return object;
  }
  if (type->kind() != TypeKind::kTuple) fail(at, "class '" + class_name + "' cannot be called");
  ops::Schema schema;
  schema.name = class_name;
  const std::vector<ops::Value> defaults = declarations_.field_defaults(class_name);
  const size_t count = type->contained().size();
  for (size_t i = 0; i < count; ++i) {
    ops::Argument field;
    field.name = type->field_names()[i];
    field.type = type->contained()[i];
    if (i + defaults.size() >= count) field.default_value = defaults[i + defaults.size() - count];
    schema.arguments.push_back(std::move(field));
  }
  std::string reason;
  const auto bound = bind_call(schema, arguments.positional, arguments.keywords, &reason);
  if (!bound) fail(at, class_name + ": " + reason);
  return make_tuple(bound_values(schema, *bound, true), type);
}

}  // namespace tensord::jit
