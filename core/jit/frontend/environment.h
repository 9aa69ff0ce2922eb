#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/jit/frontend/ast.h"
#include "core/jit/ir/graph.h"

namespace tensord::jit {

struct Closure;

// The meaning of an expression during emission: a value of the graph, several values, or something that exists only at
// compile time.
struct Binding {
  enum class Kind : uint8_t {
    kNone,
    kValue,      // value
    kMany,       // values: the results of an operator before they become a tuple
    kOperator,   // name: "aten::add"
    kFunction,   // name: a script function, or a method named through its class
    kClass,      // name
    kMethod,     // value.name
    kBuiltin,    // name: "annotate", "len"
    kNew,        // Class.__new__; name is the class
    kClosure,    // closure
    kUndefined,  // name: the reason why the variable cannot be read
  };
  Kind kind = Kind::kNone;
  GraphValue* value = nullptr;
  std::vector<GraphValue*> values;
  std::string name;
  std::shared_ptr<const Closure> closure;

  static Binding of(GraphValue* value) {
    Binding out;
    out.kind = Kind::kValue;
    out.value = value;
    return out;
  }
  static Binding of(Kind kind, std::string name, GraphValue* value = nullptr) {
    Binding out;
    out.kind = kind;
    out.name = std::move(name);
    out.value = value;
    return out;
  }
};

// A nested function and the bindings of its free names at its definition.
struct Closure {
  const FunctionDef* function;
  std::map<std::string_view, Binding> captured;
};

// The variables by name. A branch or loop body has its own scope inside the outer one, which shows what the body
// assigns. The innermost scope is last.
class Environment {
 public:
  using Scope = std::map<std::string_view, Binding>;

  const Binding* find(std::string_view name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto it = scope->find(name); it != scope->end()) return &it->second;
    }
    return nullptr;
  }
  void set(std::string_view name, Binding binding) { scopes_.back()[name] = std::move(binding); }
  void push() { scopes_.emplace_back(); }
  // Removes the innermost scope and returns the variables assigned in it.
  Scope pop() {
    Scope top = std::move(scopes_.back());
    scopes_.pop_back();
    return top;
  }
  // Installs other scopes and returns the current ones.
  std::vector<Scope> replace(std::vector<Scope> scopes) { return std::exchange(scopes_, std::move(scopes)); }

 private:
  std::vector<Scope> scopes_{1};
};

}  // namespace tensord::jit
