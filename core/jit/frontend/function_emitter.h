#pragma once

#include <functional>
#include <optional>
#include <span>

#include "core/jit/frontend/declarations.h"
#include "core/jit/frontend/environment.h"
#include "core/jit/frontend/overload.h"

namespace tensord::jit {

// Translates one script function to a graph. One object serves one translation.
class FunctionEmitter {
 public:
  // Compiles another function to find its return type if its head has none.
  using ReturnTypeOf = std::function<ops::TypePtr(const std::string& qualified_name)>;

  FunctionEmitter(Declarations& declarations, const Signature& signature, ReturnTypeOf return_type_of);
  // Throws Error with file, line and caret.
  std::unique_ptr<Function> emit();

 private:
  using Values = std::vector<GraphValue*>;
  using Statements = std::span<const Stmt* const>;
  struct Arguments {
    Values positional;
    std::vector<NamedValue> keywords;
  };
  struct Branch {
    Block* block = nullptr;
    Environment::Scope assigned;
    bool raises = false;
    GraphValue* result = nullptr;  // set if the branch returns from the function
  };

  // Nodes (function_emitter.cpp). `at` is the location of the emitted code.
  [[noreturn]] void fail(const Expr& at, const std::string& message) const;
  Node* add(Node* node);
  GraphValue* add(NodeKind kind, std::span<GraphValue* const> inputs, ops::TypePtr type, std::string name = {});
  GraphValue* constant(ops::Value value, ops::TypePtr type = nullptr);
  GraphValue* none() { return constant({}); }
  // Emits a value as code, which makes new lists and dicts on each run.
  GraphValue* materialize(const ops::Value& value, const ops::TypePtr& type);
  GraphValue* convert(GraphValue* value, const ops::TypePtr& type, Conversion conversion, int64_t fixed_list_size);
  // Converts to a declared type; throws if this is impossible.
  GraphValue* coerce(GraphValue* value, const ops::TypePtr& type, const Expr& at, const char* what);
  GraphValue* op_value(const char* op, std::span<GraphValue* const> inputs);
  // A placeholder for the value of unreachable code.
  GraphValue* unreachable() { return add(NodeKind::kUninitialized, {}, ops::tensor_type()); }
  GraphValue* as_value(const Binding& binding, const Expr& at);

  // Statements (emit_statement.cpp, emit_control.cpp)
  GraphValue* body(Statements statements);  // the result of the function; null if it always raises
  GraphValue* returning_if(const Stmt& stmt, Statements rest);
  bool statements(Statements statements);  // true if they always raise
  bool statement(const Stmt& stmt);
  void assignment(const Stmt& stmt);
  void augmented_assignment(const Stmt& stmt);
  void assign(const Expr& target, const Binding& binding);
  void assign_attribute(const Expr& target, GraphValue* value);
  void assign_subscript(const Expr& target, GraphValue* value);
  void unpack(const Expr& target, const Binding& binding);
  void define_closure(const FunctionDef& function);
  void raise_error(const Expr& at, const Expr* message, const char* class_name, const std::string& prefix);
  bool if_statement(const Stmt& stmt);
  Branch branch(Node* node, const std::function<void(Branch&)>& emit_body);
  void merge(Node* node, Branch& on_true, Branch& on_false);
  Binding merged(Node* node, Branch& on_true, Branch& on_false, const Binding* left, const Binding* right,
                 std::string_view name);
  void refine(const Expr& condition, bool is_true);
  void while_loop(const Stmt& stmt);
  void for_loop(const Stmt& stmt);
  void loop(const Stmt& stmt, GraphValue* trip_count, const std::function<void(GraphValue*)>& bind_item);
  void with_block(const Stmt& stmt, bool& raises);
  bool grad_mode_block(const Stmt& stmt, bool& raises);

  // Expressions (emit_expression.cpp)
  Binding expression(const Expr& expr, const ops::TypePtr& hint = nullptr);
  GraphValue* value(const Expr& expr, const ops::TypePtr& hint = nullptr) {
    return as_value(expression(expr, hint), expr);
  }
  GraphValue* condition(const Expr& expr);
  Binding name(const Expr& expr);
  // The qualified path of a chain of attributes that does not start at a variable, or "".
  std::string static_path(const Expr& expr) const;
  Binding static_binding(const Expr& expr, const std::string& path);
  Binding symbol_binding(const Expr& expr, const Symbol& symbol, const std::string& path);
  Binding attribute(const Expr& expr);
  Binding attribute_of(GraphValue* object, std::string_view name, const Expr& at);
  GraphValue* class_attribute(GraphValue* object, std::string_view name, const Expr& at);
  GraphValue* enum_attribute(GraphValue* object, std::string_view name, const Expr& at);
  GraphValue* tuple_item(GraphValue* tuple, int64_t index, const Expr& at);
  GraphValue* subscript(const Expr& expr);
  GraphValue* index_value(GraphValue* base, GraphValue* index, const Expr& at);
  static bool has_slice(const Expr& index);
  Values slice_bounds(const Expr& slice);
  GraphValue* sliced(GraphValue* base, const Expr& index, const Expr& at);
  GraphValue* module_item(GraphValue* modules, GraphValue* index, const Expr& at, const ops::TypePtr& hint);
  GraphValue* list(const Expr& expr, const ops::TypePtr& hint);
  GraphValue* tuple(const Expr& expr, const ops::TypePtr& hint);
  GraphValue* dict(const Expr& expr, const ops::TypePtr& hint);
  GraphValue* make_tuple(std::span<GraphValue* const> items, ops::TypePtr type = nullptr);
  GraphValue* choose(const Expr& at, GraphValue* condition, const std::function<GraphValue*()>& on_true,
                     const std::function<GraphValue*()>& on_false);
  Binding unary(const Expr& expr);
  Binding binary(const Expr& expr);

  // Calls (emit_call.cpp, emit_builtin.cpp)
  Binding call(const Expr& expr, const ops::TypePtr& hint);
  Arguments arguments(const Expr& expr);
  Binding call_operator(const std::string& name, const Arguments& given, const Expr& at);
  std::string upgraded(const std::string& name, const Arguments& arguments) const;
  GraphValue* number_of(GraphValue* other);
  Arguments with_numbers(const std::string& name, Arguments arguments);
  Binding unsupported_operator(const std::string& message, const Expr& at);
  void refuse(ErrorCode code, const std::string& message, const Expr& at) const;
  Binding emit_operator(const ops::Op& op, const BoundCall& bound);
  Values bound_values(const ops::Schema& schema, const BoundCall& bound, bool fresh_defaults);
  GraphValue* call_function(const std::string& name, const Arguments& arguments, const Expr& at);
  GraphValue* call_method(GraphValue* object, std::string_view name, Arguments arguments, const Expr& at);
  GraphValue* construct(const std::string& class_name, const Arguments& arguments, const Expr& at);
  Binding method_call(GraphValue* object, const std::string& name, const Expr& expr, const ops::TypePtr& hint);
  ops::TypePtr return_type(const Signature& signature) const;
  bool is_builtin(std::string_view name) const;
  Binding builtin(const std::string& name, const Expr& expr, const ops::TypePtr& hint);
  Binding special_form(const std::string& name, const Expr& expr);
  GraphValue* cast(const char* op, GraphValue* value, const Expr& at);
  GraphValue* is_instance(const Expr& expr);
  GraphValue* fork(const Expr& expr);
  GraphValue* wait(GraphValue* future, const Expr& at);
  GraphValue* to_list(GraphValue* tensor, const ops::TypePtr& hint, const Expr& at);

  Declarations& declarations_;
  const Signature& signature_;
  const SourceTree& tree_;
  ReturnTypeOf return_type_of_;
  std::unique_ptr<Graph> graph_;
  Block* block_;
  Environment environment_;
  ops::TypePtr return_type_;  // null while unknown
  uint32_t place_ = 0;        // offset of the emitted code
  bool has_refused_ = false;  // an operator was missing, so its result is only a placeholder
  bool raised_ = false;       // the current statement always raises; the code after it is unreachable
  int branch_depth_ = 0;      // number of enclosing branches
};

}  // namespace tensord::jit
