#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/jit/frontend/source_text.h"

namespace tensord::jit {

enum class ExprKind : uint8_t {
  kName,     // text
  kInt,      // int_value
  kFloat,    // float_value
  kComplex,  // float_value is the imaginary part
  kString,   // text
  kTrue,
  kFalse,
  kNone,
  kEllipsis,
  kTuple,
  kList,       // items
  kDict,       // items: key, value, key, value…
  kAttribute,  // items[0].text
  kSubscript,  // items[0][items[1]]
  kSlice,      // items: begin, end, step, each may be null
  kCall,       // items[0](items[1…], keywords)
  kUnary,      // text is the operator: "-", "+", "~", "not"
  kBinary,     // items[0] text items[1]; also comparisons, "is", "is not", "in", "not in"
  kAnd,
  kOr,      // items[0], items[1]
  kIfElse,  // items: then, condition, else
};

struct Expr;
struct Keyword {
  std::string_view name;
  const Expr* value;
};

// Text views point into the file or, for decoded strings, into the tree.
struct Expr {
  ExprKind kind = ExprKind::kNone;
  uint32_t begin = 0, end = 0;  // offsets into the file
  uint16_t depth = 1;           // height of the tree; the parser limits it
  std::string_view text;
  union {
    int64_t int_value = 0;
    double float_value;
  };
  std::vector<const Expr*> items;
  std::vector<Keyword> keywords;
};

enum class StmtKind : uint8_t {
  kAssign,  // target = value; annotation may be set (then value may be null); text is an operator for "+="
  kExpr,    // value
  kReturn,  // value may be null
  kIf,      // value is the condition; body, orelse
  kFor,     // for target in value: body
  kWhile,   // while value: body
  kWith,    // with value as target (may be null): body
  kDef,     // function
  kAssert,  // value, message in target (may be null)
  kRaise,   // value
  kBreak,
  kContinue,
  kPass,
};

struct FunctionDef;
struct Stmt {
  StmtKind kind = StmtKind::kPass;
  uint32_t begin = 0;
  std::string_view text;
  const Expr* target = nullptr;
  const Expr* value = nullptr;
  const Expr* annotation = nullptr;
  const FunctionDef* function = nullptr;
  std::vector<const Stmt*> body, orelse;
};

struct ParamDef {
  std::string_view name;
  uint32_t begin = 0;
  const Expr* annotation = nullptr;  // may be null
  const Expr* default_value = nullptr;
  bool is_keyword_only = false;
};

struct FunctionDef {
  std::string_view name;
  uint32_t begin = 0;
  std::vector<ParamDef> params;
  const Expr* return_annotation = nullptr;
  std::vector<const Stmt*> body;
};

// Definitions in the order of the text, with lookup by name. If several have the same name, the first one counts.
template <class Def>
class NamedDefs {
 public:
  void add(const Def* def) {
    all_.push_back(def);
    by_name_.emplace(def->name, def);
  }
  const Def* find(std::string_view name) const {  // null if there is no such definition
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  std::vector<const Def*> all_;
  std::unordered_map<std::string_view, const Def*> by_name_;
};

// "name : Type", "name : Type = value", "name = value", __annotations__["name"] = Type.
struct FieldDef {
  std::string name;
  uint32_t begin = 0;
  const Expr* annotation = nullptr;
  const Expr* value = nullptr;
};

struct ClassDef {
  std::string_view name;
  uint32_t begin = 0;
  std::vector<std::string_view> bases;  // last parts: "Module", "NamedTuple"
  std::vector<FieldDef> fields;
  NamedDefs<FunctionDef> methods;
  const FieldDef* find_field(std::string_view name) const;
};

// The syntax tree of one file. It owns all nodes and is immutable after parsing.
struct SourceTree {
  explicit SourceTree(SourceText source) : source(std::move(source)) {}
  SourceText source;
  NamedDefs<FunctionDef> functions;
  NamedDefs<ClassDef> classes;

  std::deque<Expr> exprs;  // deques keep the addresses of items and need no recursion to free
  std::deque<Stmt> stmts;
  std::deque<FunctionDef> function_defs;
  std::deque<ClassDef> class_defs;
  std::deque<std::string> strings;
};

}  // namespace tensord::jit
