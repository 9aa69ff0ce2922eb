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

// What an expression stands for while a function is emitted: a value of the graph, several of
// them, or something that exists at compile time only.
struct Binding {
  enum class Kind : uint8_t {
    kNone,
    kValue,      // value
    kMany,       // values: the returns of an operator, not yet made a tuple
    kOperator,   // name: "aten::add"
    kFunction,   // name: a script function, or a method named through its class
    kClass,      // name
    kMethod,     // value.name
    kBuiltin,    // name: "annotate", "len"
    kNew,        // Class.__new__; name is the class
    kClosure,    // closure
    kUndefined,  // name: why the variable cannot be read
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

// A nested function and what the names it uses stood for where it was defined.
struct Closure {
  const FunctionDef* function;
  std::map<std::string_view, Binding> captured;
};

// Variables by name. A branch or loop body gets a scope of its own over the outer one, so
// what it assigns can be told from what was there. The innermost scope comes last.
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
  // The variables that were assigned since push.
  Scope pop() {
    Scope top = std::move(scopes_.back());
    scopes_.pop_back();
    return top;
  }
  // Starts from nothing; gives back what was there.
  std::vector<Scope> replace(std::vector<Scope> scopes) { return std::exchange(scopes_, std::move(scopes)); }

 private:
  std::vector<Scope> scopes_{1};
};

}  // namespace tensord::jit
