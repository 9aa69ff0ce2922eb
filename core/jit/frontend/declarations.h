#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/jit/frontend/ast.h"
#include "core/jit/ir/function.h"

namespace tensord::jit {

// The meaning of a qualified name.
struct Symbol {
  enum class Kind : uint8_t { kNone, kFunction, kClass, kMethod, kField };
  Kind kind = Kind::kNone;
  const SourceTree* tree = nullptr;
  const ClassDef* class_def = nullptr;  // the class, or the class of the method or field
  const FunctionDef* function = nullptr;
  std::string class_name;  // qualified; set if class_def is set
  const FieldDef* field = nullptr;
};

// The schema of a function (without overload name), made from its head alone.
struct Signature {
  Symbol symbol;
  std::string name;
  ops::Schema schema;
  bool has_return_type = true;  // false: the return type in the schema is a guess until the function is compiled
};

// The classes and functions that the files of one archive declare. Files are parsed, and types and signatures made, on
// the first request. Not thread-safe: CompilationUnit holds the lock. Returned pointers stay valid for the lifetime of
// the object; those to signatures and trees until forget_trees().
class Declarations {
 public:
  explicit Declarations(std::vector<SourceFile> sources);

  void set_constants(std::vector<ops::Value> constants) { constants_ = std::move(constants); }
  // The version of the archive. In older versions some operators have another meaning.
  void set_version(int64_t version) { version_ = version; }
  void set_origins(SourceOrigins origins);
  int64_t version() const { return version_; }
  // The value of CONSTANTS.cN. Throws Error if it does not exist.
  const ops::Value& constant(const SourceTree& tree, const Expr& expr, std::string_view name) const;

  // "__torch__.m.f", "__torch__.m.C", "__torch__.m.C.method", "__torch__.m.Color.RED".
  Symbol find(std::string_view qualified_name);
  // Resolves a name as written in a file: a qualified name, or one declared in this file.
  Symbol find_from(const SourceTree& tree, std::string_view name);
  // The qualified name of a declaration in a file.
  std::string qualified_name(const SourceTree& tree, std::string_view name) const;
  ops::TypePtr find_type(const std::string& qualified_name);
  // The full class of a type, which may be a placeholder with its name; see find_type.
  const ops::ClassType* class_of(const ops::TypePtr& type);
  ops::TypePtr parse_type(const SourceTree& tree, const Expr& expr);
  // Null if there is no such function or method.
  const Signature* find_signature(const std::string& qualified_name);
  // The value of a literal, converted to `type` if one is given. Empty if the expression is not a literal.
  std::optional<ops::Value> literal(const SourceTree& tree, const Expr& expr, const ops::TypePtr& type = nullptr);
  std::vector<ops::Value> enum_members(const std::string& qualified_name);
  // Empty if there is no such member.
  std::optional<ops::Value> enum_member(const std::string& qualified_name, std::string_view member);
  // The default values of the last fields of a NamedTuple.
  std::vector<ops::Value> field_defaults(const std::string& qualified_name);

  std::vector<std::string> function_names();
  std::vector<std::string> class_names();

  // Keeps the types. Signatures and trees are made again on the next request. The tree of a file that was parsed twice
  // is kept: parsing it for each of many methods would take quadratic time.
  void forget_trees();

  static bool is_named_tuple(const ClassDef& def);
  static bool is_enum(const ClassDef& def);
  static bool is_interface(const ClassDef& def);

 private:
  struct File {
    std::string module_name;
    SourceText source;
    std::unique_ptr<const SourceTree> tree;
    bool was_forgotten = false;
  };
  const SourceTree& parsed(File& file);
  File* find_file(std::string_view module_name);
  const std::string& module_name(const SourceTree& tree) const;
  ops::TypePtr make_type(const std::string& name, const SourceTree& tree, const ClassDef& def);
  ops::TypePtr make_class(const std::string& name, const SourceTree& tree, const ClassDef& def);
  ops::TypePtr make_named_tuple(const std::string& name, const SourceTree& tree, const ClassDef& def);
  ops::TypePtr make_enum(const std::string& name, const SourceTree& tree, const ClassDef& def);
  std::unique_ptr<Signature> make_signature(const std::string& name, const Symbol& symbol);
  std::optional<ops::Value> sequence_literal(const SourceTree& tree, const Expr& expr, const ops::TypePtr& type);
  std::optional<ops::Value> named_literal(const SourceTree& tree, const Expr& expr);

  std::map<std::string, File, std::less<>> files_;  // by module name: "__torch__.a.b"
  std::map<const SourceTree*, std::string> module_names_;
  std::map<std::string, ops::TypePtr, std::less<>> types_;
  std::map<std::string, ops::TypePtr, std::less<>> unfinished_types_;
  std::map<std::string, std::vector<ops::Value>, std::less<>> enum_members_;
  std::map<std::string, std::unique_ptr<Signature>, std::less<>> signatures_;
  std::vector<ops::Value> constants_;
  int64_t version_ = std::numeric_limits<int64_t>::max();
};

}  // namespace tensord::jit
