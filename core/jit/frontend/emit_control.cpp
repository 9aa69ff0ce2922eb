#include <limits>
#include <set>

#include "core/jit/frontend/function_emitter.h"

namespace tensord::jit {

using ops::TypeKind;
using ops::TypePtr;

namespace {

void add_target_names(const Expr& target, std::set<std::string_view>& names) {
  if (target.kind == ExprKind::kName) names.insert(target.text);
  if (target.kind != ExprKind::kTuple && target.kind != ExprKind::kList) return;
  for (const Expr* item : target.items) add_target_names(*item, names);
}

void add_assigned_names(std::span<const Stmt* const> statements, std::set<std::string_view>& names) {
  for (const Stmt* stmt : statements) {
    const bool has_target =
        stmt->kind == StmtKind::kAssign || stmt->kind == StmtKind::kFor || stmt->kind == StmtKind::kWith;
    if (has_target && stmt->target) add_target_names(*stmt->target, names);
    add_assigned_names(stmt->body, names);
    add_assigned_names(stmt->orelse, names);
  }
}

void add_used_names(const Expr* expr, std::set<std::string_view>& names) {
  if (!expr) return;
  if (expr->kind == ExprKind::kName) names.insert(expr->text);
  for (const Expr* item : expr->items) add_used_names(item, names);
  for (const Keyword& keyword : expr->keywords) add_used_names(keyword.value, names);
}

void add_used_names(std::span<const Stmt* const> statements, std::set<std::string_view>& names) {
  for (const Stmt* stmt : statements) {
    add_used_names(stmt->value, names);
    add_used_names(stmt->target, names);
    if (stmt->function) add_used_names(stmt->function->body, names);
    add_used_names(stmt->body, names);
    add_used_names(stmt->orelse, names);
  }
}

}  // namespace

void FunctionEmitter::define_closure(const FunctionDef& function) {
  auto closure = std::make_shared<Closure>();
  closure->function = &function;
  std::set<std::string_view> names;
  add_used_names(function.body, names);
  for (const std::string_view name : names) {
    if (const Binding* binding = environment_.find(name)) closure->captured[name] = *binding;
  }
  Binding binding;
  binding.kind = Binding::Kind::kClosure;
  binding.closure = std::move(closure);
  environment_.set(function.name, std::move(binding));
}

// ---- if

GraphValue* FunctionEmitter::condition(const Expr& expr) {
  GraphValue* test = value(expr);
  if (raised_) return add(NodeKind::kUninitialized, {}, ops::bool_type());
  return test->type()->kind() == TypeKind::kBool ? test : cast("aten::Bool", test, expr);
}

FunctionEmitter::Branch FunctionEmitter::branch(Node* node, const std::function<void(Branch&)>& emit_body) {
  Branch out;
  out.block = node->add_block();
  Block* outer = std::exchange(block_, out.block);
  const bool outer_raised = std::exchange(raised_, false);
  branch_depth_ += node->kind() == NodeKind::kIf ? 1 : 0;
  environment_.push();
  emit_body(out);
  out.assigned = environment_.pop();
  branch_depth_ -= node->kind() == NodeKind::kIf ? 1 : 0;
  raised_ = outer_raised;
  block_ = outer;
  return out;
}

bool FunctionEmitter::if_statement(const Stmt& stmt) {
  GraphValue* test = condition(*stmt.value);
  if (raised_) return true;
  Node* node = add(graph_->create(NodeKind::kIf, Values{test}));
  Branch on_true = branch(node, [&](Branch& out) {
    refine(*stmt.value, true);
    out.raises = statements(stmt.body);
  });
  Branch on_false = branch(node, [&](Branch& out) {
    refine(*stmt.value, false);
    out.raises = statements(stmt.orelse);
  });
  merge(node, on_true, on_false);
  return on_true.raises && on_false.raises;
}

void FunctionEmitter::merge(Node* node, Branch& on_true, Branch& on_false) {
  std::set<std::string_view> names;
  for (const auto& [name, binding] : on_true.assigned) names.insert(name);
  for (const auto& [name, binding] : on_false.assigned) names.insert(name);
  for (const std::string_view name : names) {
    const auto lookup = [&](const Branch& branch) {
      const auto it = branch.assigned.find(name);
      return it != branch.assigned.end() ? &it->second : environment_.find(name);
    };
    Binding result = merged(node, on_true, on_false, lookup(on_true), lookup(on_false), name);
    environment_.set(name, std::move(result));
  }
}

Binding FunctionEmitter::merged(Node* node, Branch& on_true, Branch& on_false, const Binding* left,
                                const Binding* right, std::string_view name) {
  const auto undefined = [&](const std::string& why) {
    return Binding::of(Binding::Kind::kUndefined, "variable '" + std::string(name) + "' " + why);
  };
  const auto is_value = [](const Binding* binding) { return binding && binding->kind == Binding::Kind::kValue; };
  // The values of a branch that raises are never read.
  const bool ignores_left = on_true.raises && !on_false.raises, ignores_right = on_false.raises && !on_true.raises;
  if (ignores_left && right && !is_value(right)) return *right;
  if (ignores_right && left && !is_value(left)) return *left;
  if (!is_value(left) && !is_value(right))
    return left && right && left->kind == right->kind && left->name == right->name
               ? *left
               : undefined("is not defined in every branch");
  if ((!is_value(left) && !ignores_left) || (!is_value(right) && !ignores_right))
    return undefined("is not defined in every branch");
  const auto output_of = [&](Branch& branch, const Binding* mine, const Binding* other, bool is_ignored) {
    if (!is_ignored) return mine->value;
    block_ = branch.block;
    GraphValue* out = add(NodeKind::kUninitialized, {}, other->value->type());
    block_ = node->block();
    return out;
  };
  if (left && right && left->value == right->value && is_value(left)) return *left;
  GraphValue* from_true = output_of(on_true, left, right, ignores_left);
  GraphValue* from_false = output_of(on_false, right, left, ignores_right);
  TypePtr type = ops::unify(from_true->type(), from_false->type());
  if (!type) {
    return undefined("has type " + from_true->type()->str() + " in one branch and " + from_false->type()->str() +
                     " in the other");
  }
  on_true.block->add_output(from_true);
  on_false.block->add_output(from_false);
  GraphValue* out = node->add_output(std::move(type));
  out->set_name(std::string(name));
  return Binding::of(out);
}

// Narrows the types of variables from a condition: "x is not None", "isinstance(x, T)", and both sides of "and". Saved
// code has explicit casts; hand-written code does not.
void FunctionEmitter::refine(const Expr& test, bool is_true) {
  if (test.kind == ExprKind::kUnary && test.text == "not") return refine(*test.items[0], !is_true);
  if ((test.kind == ExprKind::kAnd && is_true) || (test.kind == ExprKind::kOr && !is_true)) {
    refine(*test.items[0], is_true);
    return refine(*test.items[1], is_true);
  }
  if (test.kind != ExprKind::kBinary && test.kind != ExprKind::kCall) return;
  const bool is_call = test.kind == ExprKind::kCall;
  const Expr* subject = is_call ? (test.items.size() == 3 ? test.items[1] : nullptr) : test.items[0];
  if (!subject || subject->kind != ExprKind::kName) return;
  const Binding* binding = environment_.find(subject->text);
  if (!binding || binding->kind != Binding::Kind::kValue) return;
  TypePtr narrowed;
  if (is_call) {
    if (!is_true || test.items[0]->kind != ExprKind::kName || test.items[0]->text != "isinstance" ||
        test.items[2]->kind == ExprKind::kTuple || test.items[2]->kind == ExprKind::kList ||
        test.items[2]->text == "list") {
      return;
    }
    narrowed = declarations_.parse_type(tree_, *test.items[2]);
  } else {
    const bool is_not_none = (test.text == "is not" && is_true) || (test.text == "is" && !is_true);
    if (!is_not_none || test.items[1]->kind != ExprKind::kNone) return;
    if (binding->value->type()->kind() == TypeKind::kOptional) narrowed = binding->value->type()->element();
  }
  if (!narrowed || ops::same_type(narrowed, binding->value->type())) return;
  environment_.set(subject->text, Binding::of(add(NodeKind::kUncheckedCast, Values{binding->value}, narrowed)));
}

// ---- loops

void FunctionEmitter::loop(const Stmt& stmt, GraphValue* trip_count,
                           const std::function<void(GraphValue*)>& bind_item) {
  const bool is_while = stmt.kind == StmtKind::kWhile;
  std::set<std::string_view> names;
  add_assigned_names(stmt.body, names);
  GraphValue* initial = is_while ? condition(*stmt.value) : constant(true);
  std::vector<std::string_view> carried;
  // Code after a raise is never reached, but the graph must be well formed.
  Values inputs{raised_ ? constant(int64_t{0}) : trip_count, initial};
  for (const std::string_view name : names) {
    const Binding* binding = environment_.find(name);
    if (!binding || binding->kind != Binding::Kind::kValue) continue;
    carried.push_back(name);
    inputs.push_back(binding->value);
  }
  Node* node = add(graph_->create(NodeKind::kLoop, inputs));
  branch(node, [&](Branch& out) {
    GraphValue* index = out.block->add_input(ops::int_type());
    for (size_t i = 0; i < carried.size(); ++i) {
      environment_.set(carried[i], Binding::of(out.block->add_input(inputs[i + 2]->type(), std::string(carried[i]))));
    }
    if (bind_item) bind_item(index);
    const bool raises = statements(stmt.body);
    place_ = stmt.begin;
    out.block->add_output(is_while && !raises ? condition(*stmt.value) : constant(true));
    for (size_t i = 0; i < carried.size(); ++i) {
      const Binding* binding = environment_.find(carried[i]);
      const std::string what = "loop variable '" + std::string(carried[i]) + "'";
      GraphValue* last = as_value(*binding, *stmt.value);
      out.block->add_output(raises ? out.block->inputs()[i + 1]
                                   : coerce(last, inputs[i + 2]->type(), *stmt.value, what.c_str()));
    }
  });
  for (size_t i = 0; i < carried.size(); ++i) {
    GraphValue* result = node->add_output(inputs[i + 2]->type());
    result->set_name(std::string(carried[i]));
    environment_.set(carried[i], Binding::of(result));
  }
}

void FunctionEmitter::while_loop(const Stmt& stmt) {
  loop(stmt, constant(std::numeric_limits<int64_t>::max()), nullptr);
}

void FunctionEmitter::for_loop(const Stmt& stmt) {
  const Expr& source = *stmt.value;
  const bool is_range = source.kind == ExprKind::kCall && source.items[0]->kind == ExprKind::kName &&
                        source.items[0]->text == "range" && !environment_.find("range");
  if (is_range) {
    Values bounds;
    for (size_t i = 1; i < source.items.size(); ++i)
      bounds.push_back(coerce(value(*source.items[i]), ops::int_type(), *source.items[i], "range"));
    if (bounds.empty() || bounds.size() > 3) fail(source, "range takes 1 to 3 arguments");
    if (bounds.size() == 1) {
      loop(stmt, bounds[0], [&](GraphValue* index) { assign(*stmt.target, Binding::of(index)); });
      return;
    }
    if (bounds.size() == 2) bounds.push_back(constant(int64_t{1}));
    GraphValue* count = op_value("aten::__range_length", bounds);
    loop(stmt, count, [&](GraphValue* index) {
      assign(*stmt.target, Binding::of(op_value("aten::__derive_index", Values{index, bounds[0], bounds[2]})));
    });
    return;
  }
  GraphValue* items = value(source);
  const TypeKind kind = items->type()->kind();
  if (kind == TypeKind::kDict) items = as_value(call_operator("aten::keys", {{items}, {}}, source), source);
  GraphValue* count = as_value(call_operator("aten::len", {{items}, {}}, source), source);
  loop(stmt, count, [&](GraphValue* index) {
    if (kind == TypeKind::kTensor) {
      assign(*stmt.target, call_operator("aten::select", {{items, constant(int64_t{0}), index}, {}}, source));
    } else {
      assign(*stmt.target, Binding::of(index_value(items, index, source)));
    }
  });
}

// ---- with

// "with torch.no_grad():" in hand-written code. Saved code has a class for it instead.
bool FunctionEmitter::grad_mode_block(const Stmt& stmt, bool& raises) {
  const Expr& item = *stmt.value;
  if (item.kind != ExprKind::kCall || item.items.size() != 1 || !item.keywords.empty()) return false;
  const std::string path = static_path(*item.items[0]);
  const bool is_off = path == "torch.no_grad" || path == "torch.inference_mode";
  if (!is_off && path != "torch.enable_grad") return false;
  GraphValue* before = op_value("aten::is_grad_enabled", {});
  call_operator("aten::set_grad_enabled", {{constant(!is_off)}, {}}, item);
  raises = statements(stmt.body);
  place_ = stmt.begin;
  if (!raises) call_operator("aten::set_grad_enabled", {{before}, {}}, item);
  return true;
}

void FunctionEmitter::with_block(const Stmt& stmt, bool& raises) {
  if (grad_mode_block(stmt, raises)) return;
  GraphValue* context = value(*stmt.value);
  GraphValue* entered = call_method(context, "__enter__", {}, *stmt.value);
  if (stmt.target) assign(*stmt.target, Binding::of(entered));
  call_operator("prim::Enter", {{context}, {}}, *stmt.value);
  raises = statements(stmt.body);
  place_ = stmt.begin;
  if (raises) return;
  call_operator("prim::Exit", {{context}, {}}, *stmt.value);
  call_method(context, "__exit__", {{none(), none(), none()}, {}}, *stmt.value);
}

}  // namespace tensord::jit
