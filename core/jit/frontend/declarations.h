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

// What a qualified name stands for.
struct Symbol {
  enum class Kind : uint8_t { kNone, kFunction, kClass, kMethod, kField };
  Kind kind = Kind::kNone;
  const SourceTree* tree = nullptr;
  const ClassDef* class_def = nullptr;  // of a class, or that a method or field belongs to
  const FunctionDef* function = nullptr;
  std::string class_name;  // qualified, when class_def is set
  const FieldDef* field = nullptr;
};

// How a function is called: its schema (no overload), made from its head alone.
struct Signature {
  Symbol symbol;
  std::string name;
  ops::Schema schema;
  bool has_return_type = true;  // false: the schema's return type is a guess until it is compiled
};

// The classes and functions that the files of one archive declare. Files are parsed, and
// types and signatures made, when they are first asked for. Not thread-safe: CompilationUnit
// holds the lock. Pointers given out stay valid as long as it lives, those to signatures and trees until
// forget_trees().
class Declarations {
 public:
  explicit Declarations(std::vector<SourceFile> sources);

  void set_constants(std::vector<ops::Value> constants) { constants_ = std::move(constants); }
  // Of the archive; older ones mean other things by some operators.
  void set_version(int64_t version) { version_ = version; }
  void set_origins(SourceOrigins origins);
  int64_t version() const { return version_; }
  // CONSTANTS.cN; throws Error for a number that is not there.
  const ops::Value& constant(const SourceTree& tree, const Expr& expr, std::string_view name) const;

  // "__torch__.m.f", "__torch__.m.C", "__torch__.m.C.method", "__torch__.m.Color.RED".
  Symbol find(std::string_view qualified_name);
  // A name as written in a file: qualified, or of that file.
  Symbol find_from(const SourceTree& tree, std::string_view name);
  // The qualified name of what a file declares.
  std::string qualified_name(const SourceTree& tree, std::string_view name) const;
  ops::TypePtr find_type(const std::string& qualified_name);
  // The full class of a type that may name it only; see find_type.
  const ops::ClassType* class_of(const ops::TypePtr& type);
  ops::TypePtr parse_type(const SourceTree& tree, const Expr& expr);
  // Null when there is no such function or method.
  const Signature* find_signature(const std::string& qualified_name);
  // The value of a literal, converted to `type` when that is given; null when it is none.
  std::optional<ops::Value> literal(const SourceTree& tree, const Expr& expr, const ops::TypePtr& type = nullptr);
  std::vector<ops::Value> enum_members(const std::string& qualified_name);
  // Null when there is no such member.
  std::optional<ops::Value> enum_member(const std::string& qualified_name, std::string_view member);
  // Default values of the last fields of a NamedTuple.
  std::vector<ops::Value> field_defaults(const std::string& qualified_name);

  std::vector<std::string> function_names();
  std::vector<std::string> class_names();

  // Types stay; signatures and trees are made again when they are asked for.
  void forget_trees();

  static bool is_named_tuple(const ClassDef& def);
  static bool is_enum(const ClassDef& def);
  static bool is_interface(const ClassDef& def);

 private:
  struct File {
    std::string module_name;
    SourceText source;
    std::unique_ptr<const SourceTree> tree;
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
