#include "core/jit/frontend/function_emitter.h"

#include "core/base/cancellation.h"

namespace tensord::jit {

using ops::TypeKind;
using ops::TypePtr;

namespace {

bool contains_return(std::span<const Stmt* const> statements) {
  for (const Stmt* stmt : statements) {
    if (stmt->kind == StmtKind::kReturn) return true;
    if (contains_return(stmt->body) || contains_return(stmt->orelse)) return true;
  }
  return false;
}

// Whether control never reaches the end of the statements.
bool always_leaves(std::span<const Stmt* const> statements) {
  for (const Stmt* stmt : statements) {
    if (stmt->kind == StmtKind::kReturn || stmt->kind == StmtKind::kRaise) return true;
    if (stmt->kind == StmtKind::kIf && always_leaves(stmt->body) && always_leaves(stmt->orelse)) return true;
  }
  return false;
}

}  // namespace

GraphValue* FunctionEmitter::body(Statements all) {
  for (size_t i = 0; i < all.size(); ++i) {
    const Stmt& stmt = *all[i];
    place_ = stmt.begin;
    raised_ = false;
    if (stmt.kind == StmtKind::kReturn) {
      GraphValue* result = stmt.value ? value(*stmt.value, return_type_) : none();
      if (raised_) return nullptr;
      if (!return_type_) return result;
      if (!stmt.value) {
        if (!ops::is_subtype(result->type(), return_type_))
          tree_.source.fail(stmt.begin, "a value of type " + return_type_->str() + " must be returned");
        return result;
      }
      return coerce(result, return_type_, *stmt.value, "return");
    }
    if (stmt.kind == StmtKind::kIf && contains_return({&all[i], 1})) return returning_if(stmt, all.subspan(i + 1));
    if (statement(stmt)) return nullptr;
  }
  // A function without a return at its end returns None.
  GraphValue* result = none();
  if (return_type_ && !ops::is_subtype(result->type(), return_type_)) {
    tree_.source.fail(place_, "a value of type " + return_type_->str() + " must be returned");
  }
  return result;
}

// For "if c: return a" followed by other statements, the others become part of the branch that does not return.
GraphValue* FunctionEmitter::returning_if(const Stmt& stmt, Statements rest) {
  const bool then_leaves = always_leaves(stmt.body), else_leaves = always_leaves(stmt.orelse);
  if (!then_leaves && !else_leaves && !rest.empty()) {
    tree_.source.fail(ErrorCode::kUnimplemented, stmt.begin,
                      "a return inside of nested branches that also go on is not supported");
  }
  GraphValue* test = condition(*stmt.value);
  if (raised_) return nullptr;
  Node* node = add(graph_->create(NodeKind::kIf, Values{test}));
  const auto emit_branch = [&](const std::vector<const Stmt*>& own, bool leaves, bool is_true) {
    return branch(node, [&](Branch& out) {
      refine(*stmt.value, is_true);
      std::vector<const Stmt*> all = own;
      if (!leaves) all.insert(all.end(), rest.begin(), rest.end());
      out.result = body(all);
      out.raises = out.result == nullptr;
    });
  };
  Branch on_true = emit_branch(stmt.body, then_leaves, true), on_false = emit_branch(stmt.orelse, else_leaves, false);
  if (on_true.raises && on_false.raises) return nullptr;
  for (auto [mine, other] : {std::pair(&on_true, &on_false), std::pair(&on_false, &on_true)}) {
    if (!mine->raises) continue;
    block_ = mine->block;
    mine->result = add(NodeKind::kUninitialized, {}, other->result->type());
    block_ = node->block();
  }
  TypePtr type = return_type_ ? return_type_ : ops::unify(on_true.result->type(), on_false.result->type());
  if (!type)
    tree_.source.fail(stmt.begin, "the branches return different types: " + on_true.result->type()->str() + " and " +
                                      on_false.result->type()->str());
  on_true.block->add_output(on_true.result);
  on_false.block->add_output(on_false.result);
  return node->add_output(std::move(type));
}

bool FunctionEmitter::statements(Statements all) {
  for (const Stmt* stmt : all) {
    if (statement(*stmt)) return true;
  }
  return false;
}

bool FunctionEmitter::statement(const Stmt& stmt) {
  check_work_cancelled();
  place_ = stmt.begin;
  raised_ = false;
  bool raises = false;
  switch (stmt.kind) {
    case StmtKind::kPass: break;
    case StmtKind::kAssign:
      if (stmt.text.empty()) {
        assignment(stmt);
      } else {
        augmented_assignment(stmt);
      }
      return raised_;
    case StmtKind::kExpr: expression(*stmt.value); return raised_;
    case StmtKind::kReturn:
      tree_.source.fail(ErrorCode::kUnimplemented, stmt.begin,
                        "a return inside of a loop or with block is not supported");
    case StmtKind::kIf: return if_statement(stmt);
    case StmtKind::kFor: for_loop(stmt); return raised_;
    case StmtKind::kWhile: while_loop(stmt); return raised_;
    case StmtKind::kWith: with_block(stmt, raises); return raises;
    case StmtKind::kDef: define_closure(*stmt.function); break;
    case StmtKind::kAssert: {
      GraphValue* test = condition(*stmt.value);
      if (raised_) return true;
      Node* node = add(graph_->create(NodeKind::kIf, Values{test}));
      branch(node, [](Branch&) {});
      branch(node, [&](Branch&) { raise_error(*stmt.value, stmt.target, nullptr, "AssertionError: "); });
      refine(*stmt.value, true);
      break;
    }
    case StmtKind::kRaise: {
      const Expr& error = *stmt.value;
      const bool is_call = error.kind == ExprKind::kCall;
      const std::string class_name = "builtins." + std::string(is_call ? error.items[0]->text : error.text);
      raise_error(error, is_call && error.items.size() > 1 ? error.items[1] : nullptr, class_name.c_str(), "");
      return true;
    }
    case StmtKind::kBreak:
    case StmtKind::kContinue:
      tree_.source.fail(ErrorCode::kUnimplemented, stmt.begin, "break and continue are not supported");
  }
  return false;
}

void FunctionEmitter::raise_error(const Expr& at, const Expr* message, const char* class_name,
                                  const std::string& prefix) {
  Arguments arguments;
  GraphValue* text = message ? value(*message) : constant("");
  if (text->type()->kind() != TypeKind::kString) text = as_value(call_operator("aten::str", {{text}, {}}, at), at);
  if (!prefix.empty()) text = as_value(call_operator("aten::add", {{constant(prefix), text}, {}}, at), at);
  arguments.positional.push_back(text);
  if (class_name) arguments.positional.push_back(constant(class_name));
  call_operator("prim::RaiseException", arguments, at);
}

void FunctionEmitter::assignment(const Stmt& stmt) {
  if (!stmt.value) return;  // "x : int" alone says nothing that is needed
  if (stmt.annotation) {
    const TypePtr type = declarations_.parse_type(tree_, *stmt.annotation);
    GraphValue* converted = coerce(value(*stmt.value, type), type, *stmt.value, "assignment");
    if (!ops::same_type(converted->type(), type)) {
      converted = converted->constant() ? constant(*converted->constant(), type)
                                        : add(NodeKind::kUncheckedCast, Values{converted}, type);
    }
    assign(*stmt.target, Binding::of(converted));
    return;
  }
  const Expr& target = *stmt.target;
  const Expr& source = *stmt.value;
  // a, b = x, y: evaluates everything on the right before it assigns, and makes no tuple.
  if (target.kind == ExprKind::kTuple && source.kind == ExprKind::kTuple &&
      target.items.size() == source.items.size()) {
    std::vector<Binding> values;
    for (const Expr* item : source.items) values.push_back(expression(*item));
    for (size_t i = 0; i < values.size(); ++i) assign(*target.items[i], values[i]);
    return;
  }
  assign(target, expression(source));
}

void FunctionEmitter::augmented_assignment(const Stmt& stmt) {
  static constexpr std::pair<std::string_view, const char*> kOperators[] = {
      {"+", "add"},       {"-", "sub"},         {"*", "mul"},        {"/", "div"},     {"//", "floordiv"},
      {"%", "remainder"}, {"**", "pow"},        {"@", "matmul"},     {"&", "__and__"}, {"|", "__or__"},
      {"^", "__xor__"},   {"<<", "__lshift__"}, {">>", "__rshift__"}};
  GraphValue* left = value(*stmt.target);
  GraphValue* right = value(*stmt.value);
  const bool is_tensor = left->type()->kind() == TypeKind::kTensor;
  const bool in_place = (is_tensor && (stmt.text == "+" || stmt.text == "-" || stmt.text == "*" || stmt.text == "/")) ||
                        (left->type()->kind() == TypeKind::kList && stmt.text == "+");
  for (const auto& [text, name] : kOperators) {
    if (text != stmt.text) continue;
    std::string op = std::string("aten::") + name;
    if (is_tensor && stmt.text == "//") op = "aten::floor_divide";
    assign(*stmt.target, call_operator(in_place ? op + "_" : op, {{left, right}, {}}, *stmt.target));
  }
}

void FunctionEmitter::assign(const Expr& target, const Binding& binding) {
  if (raised_) return;
  switch (target.kind) {
    case ExprKind::kName: {
      Binding named = binding;
      if (named.kind == Binding::Kind::kMany) named = Binding::of(as_value(binding, target));
      if (named.kind == Binding::Kind::kValue && named.value->name().empty())
        named.value->set_name(std::string(target.text));
      environment_.set(target.text, std::move(named));
      return;
    }
    case ExprKind::kAttribute: assign_attribute(target, as_value(binding, target)); return;
    case ExprKind::kSubscript: assign_subscript(target, as_value(binding, target)); return;
    case ExprKind::kTuple:
    case ExprKind::kList: unpack(target, binding); return;
    default: fail(target, "this cannot be assigned to");
  }
}

void FunctionEmitter::assign_attribute(const Expr& target, GraphValue* new_value) {
  GraphValue* object = value(*target.items[0]);
  if (raised_) return;
  const ops::ClassType* type = declarations_.class_of(object->type());
  if (!type) fail(target, "a value of type " + object->type()->str() + " has no attributes to set");
  const int index = type->find_attribute(target.text);
  if (index < 0) fail(target, concat("class ", type->name(), " has no attribute '", target.text, "'"));
  new_value = coerce(new_value, type->attributes()[static_cast<size_t>(index)].type, target, "assignment");
  add(graph_->create(NodeKind::kSetAttr, Values{object, new_value}))->set_name(std::string(target.text));
}

void FunctionEmitter::assign_subscript(const Expr& target, GraphValue* new_value) {
  GraphValue* base = value(*target.items[0]);
  if (declarations_.class_of(base->type())) {
    call_method(base, "__setitem__", {{value(*target.items[1]), new_value}, {}}, target);
    return;
  }
  if (base->type()->kind() == TypeKind::kTensor) {
    tree_.source.fail(ErrorCode::kUnimplemented, target.begin,
                      "assignment to a tensor's elements by subscript is not supported");
  }
  call_operator("aten::_set_item", {{base, value(*target.items[1]), new_value}, {}}, target);
}

void FunctionEmitter::unpack(const Expr& target, const Binding& binding) {
  const size_t count = target.items.size();
  Values items;
  if (binding.kind == Binding::Kind::kMany) {
    items = binding.values;
  } else {
    GraphValue* packed = as_value(binding, target);
    const TypePtr& type = packed->type();
    if (type->kind() == TypeKind::kTuple) {
      if (type->contained().size() == count) {
        Node* node = add(graph_->create(NodeKind::kTupleUnpack, Values{packed}));
        for (const TypePtr& member : type->contained()) items.push_back(node->add_output(member));
      } else {
        items.resize(type->contained().size());
      }
    } else {
      TypePtr element = type->kind() == TypeKind::kList ? type->element() : nullptr;
      if (type->kind() == TypeKind::kTensor) {
        packed = as_value(call_operator("aten::unbind", {{packed}, {}}, target), target);
        element = ops::tensor_type();
      }
      if (!element) fail(target, "a value of type " + type->str() + " cannot be unpacked");
      Node* node = add(graph_->create(NodeKind::kListUnpack, Values{packed}));
      for (size_t i = 0; i < count; ++i) items.push_back(node->add_output(element));
    }
  }
  if (items.size() != count) fail(target, concat("got ", items.size(), " values to unpack, expected ", count));
  for (size_t i = 0; i < count; ++i) assign(*target.items[i], Binding::of(items[i]));
}

}  // namespace tensord::jit
