#include "core/jit/frontend/declarations.h"

#include <algorithm>
#include <charconv>

#include "core/jit/frontend/parser.h"

namespace tensord::jit {

using ops::TypePtr;
using ops::Value;

namespace {

// Limits the depth of classes in attributes of classes. Real models stay below 20.
constexpr size_t kMaxClassNesting = 150;

std::string module_name_of(std::string_view file) {
  if (file.starts_with('/')) return "__torch__";  // a file that a user wrote, by its path
  if (file.starts_with("code/")) file.remove_prefix(5);
  if (file.ends_with(".py")) file.remove_suffix(3);
  std::string name(file);
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

bool has_base(const ClassDef& def, std::string_view base) {
  return std::find(def.bases.begin(), def.bases.end(), base) != def.bases.end();
}

std::vector<std::string> string_list(const Expr* expr) {
  std::vector<std::string> out;
  if (!expr) return out;
  for (const Expr* item : expr->items) {
    if (item && item->kind == ExprKind::kString) out.emplace_back(item->text);
  }
  return out;
}

bool is_final(const SourceTree& tree, const FieldDef& field) {
  return field.annotation && tree.source.text().substr(field.annotation->begin).starts_with("Final");
}

}  // namespace

Declarations::Declarations(std::vector<SourceFile> sources) {
  for (SourceFile& source : sources) {
    std::string name = module_name_of(source.name);
    SourceText text(std::move(source.name), std::move(source.text));
    files_.insert_or_assign(name, File{name, std::move(text), nullptr});
  }
}

void Declarations::set_origins(SourceOrigins origins) {
  for (auto& [name, file] : files_) {
    const auto found = origins.find(file.source.name());
    if (found != origins.end()) file.source.set_origins(std::move(found->second));
  }
}

const SourceTree& Declarations::parsed(File& file) {
  if (!file.tree) {
    file.tree = parse_source(file.source);
    module_names_[file.tree.get()] = file.module_name;
  }
  return *file.tree;
}

Declarations::File* Declarations::find_file(std::string_view name) {
  const auto it = files_.find(name);
  return it == files_.end() ? nullptr : &it->second;
}

void Declarations::forget_trees() {
  signatures_.clear();
  for (auto& [name, file] : files_) {
    if (!file.tree || file.was_forgotten) continue;
    module_names_.erase(file.tree.get());
    file.tree.reset();
    file.was_forgotten = true;
  }
}

const std::string& Declarations::module_name(const SourceTree& tree) const { return module_names_.at(&tree); }

std::string Declarations::qualified_name(const SourceTree& tree, std::string_view name) const {
  return module_name(tree) + "." + std::string(name);
}

Symbol Declarations::find(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {};
  const std::string_view prefix = name.substr(0, dot), last = name.substr(dot + 1);
  Symbol symbol;
  if (File* file = find_file(prefix)) {
    symbol.tree = &parsed(*file);
    if ((symbol.function = symbol.tree->functions.find(last))) {
      symbol.kind = Symbol::Kind::kFunction;
      return symbol;
    }
    if ((symbol.class_def = symbol.tree->classes.find(last))) {
      symbol.kind = Symbol::Kind::kClass;
      symbol.class_name = name;
      return symbol;
    }
  }
  const size_t class_dot = prefix.rfind('.');
  File* file = class_dot == std::string_view::npos ? nullptr : find_file(prefix.substr(0, class_dot));
  if (!file) return {};
  symbol.tree = &parsed(*file);
  symbol.class_def = symbol.tree->classes.find(prefix.substr(class_dot + 1));
  if (!symbol.class_def) return {};
  symbol.class_name = prefix;
  if ((symbol.function = symbol.class_def->methods.find(last))) {
    symbol.kind = Symbol::Kind::kMethod;
  } else if ((symbol.field = symbol.class_def->find_field(last))) {
    symbol.kind = Symbol::Kind::kField;
  }
  return symbol.kind == Symbol::Kind::kNone ? Symbol{} : symbol;
}

Symbol Declarations::find_from(const SourceTree& tree, std::string_view name) {
  if (name.starts_with("__torch__.")) {
    if (Symbol symbol = find(name); symbol.kind != Symbol::Kind::kNone) return symbol;
  }
  return find(qualified_name(tree, name));
}

bool Declarations::is_named_tuple(const ClassDef& def) { return has_base(def, "NamedTuple"); }
bool Declarations::is_enum(const ClassDef& def) { return has_base(def, "Enum"); }
bool Declarations::is_interface(const ClassDef& def) {
  return has_base(def, "Interface") || has_base(def, "ModuleInterface");
}

// ---- types

TypePtr Declarations::find_type(const std::string& name) {
  if (const auto it = types_.find(name); it != types_.end()) return it->second;
  if (name.starts_with("__torch__.torch.classes.")) return types_[name] = ops::opaque_type(name);
  // A class that refers to itself gets a placeholder type of the same name without attributes, so that the types do not
  // own each other in a cycle. class_of finds the full type.
  if (const auto it = unfinished_types_.find(name); it != unfinished_types_.end()) return it->second;
  const Symbol symbol = find(name);
  if (symbol.kind != Symbol::Kind::kClass) return nullptr;
  if (unfinished_types_.size() >= kMaxClassNesting)
    symbol.tree->source.fail(symbol.class_def->begin, "classes are nested too deeply");
  struct Unfinished {
    std::map<std::string, TypePtr, std::less<>>& types;
    const std::string& name;
    ~Unfinished() { types.erase(name); }
  } unfinished{unfinished_types_, name};
  unfinished_types_[name] = std::make_shared<ops::ClassType>(name, has_base(*symbol.class_def, "Module"));
  TypePtr type = make_type(name, *symbol.tree, *symbol.class_def);
  types_[name] = type;
  return type;
}

const ops::ClassType* Declarations::class_of(const TypePtr& type) {
  if (type->kind() != ops::TypeKind::kClass) return nullptr;
  const TypePtr full = find_type(type->name());
  return static_cast<const ops::ClassType*>(full ? full.get() : type.get());
}

TypePtr Declarations::make_type(const std::string& name, const SourceTree& tree, const ClassDef& def) {
  if (is_named_tuple(def)) return make_named_tuple(name, tree, def);
  if (is_enum(def)) return make_enum(name, tree, def);
  if (is_interface(def)) return ops::interface_type(name);
  return make_class(name, tree, def);
}

TypePtr Declarations::make_class(const std::string& name, const SourceTree& tree, const ClassDef& def) {
  auto type = std::make_shared<ops::ClassType>(name, has_base(def, "Module"));
  for (const FieldDef& field : def.fields) {
    if (field.name == "__parameters__") type->parameter_names = string_list(field.value);
    if (field.name == "__buffers__") type->buffer_names = string_list(field.value);
    // A field with a value is a constant of the class and takes no slot.
    if (field.value || !field.annotation || is_final(tree, field)) continue;
    type->add_attribute(field.name, parse_type(tree, *field.annotation));
  }
  return type;
}

TypePtr Declarations::make_named_tuple(const std::string& name, const SourceTree& tree, const ClassDef& def) {
  std::vector<std::string> names;
  std::vector<TypePtr> members;
  for (const FieldDef& field : def.fields) {
    if (!field.annotation) continue;
    names.push_back(field.name);
    members.push_back(parse_type(tree, *field.annotation));
  }
  return ops::named_tuple_type(name, std::move(names), std::move(members));
}

TypePtr Declarations::make_enum(const std::string& name, const SourceTree& tree, const ClassDef& def) {
  std::vector<std::pair<std::string, Value>> members;
  TypePtr value_type;
  for (const FieldDef& field : def.fields) {
    if (!field.value) continue;
    std::optional<Value> value = literal(tree, *field.value);
    if (!value) tree.source.fail(field.begin, "the value of an enum member must be a literal");
    if (!value_type) value_type = ops::type_of(*value);
    members.emplace_back(field.name, std::move(*value));
  }
  TypePtr type = ops::enum_type(name, value_type ? value_type : ops::int_type());
  std::vector<Value>& values = enum_members_[name];
  values.clear();
  for (auto& [member, value] : members)
    values.emplace_back(make_intrusive<ops::EnumObject>(type, member, std::move(value)));
  return type;
}

TypePtr Declarations::parse_type(const SourceTree& tree, const Expr& expr) {
  if (expr.kind == ExprKind::kNone) return ops::none_type();
  const std::string_view text =
      expr.kind == ExprKind::kString ? expr.text : tree.source.text().substr(expr.begin, expr.end - expr.begin);
  const auto resolver = [&](const std::string& name) -> TypePtr {
    if (TypePtr type = find_type(name)) return type;
    if (name.starts_with("torch.jit.")) return nullptr;
    return find_type(module_name(tree) + "." + name);
  };
  try {
    return ops::parse_annotation(text, resolver);
  } catch (const Error& error) {
    // Errors of other classes already have a location.
    if (!std::string_view(error.what()).starts_with("type \"")) throw;
    tree.source.fail(error.code(), expr.begin, error.what());
  }
}

// ---- enums and named tuples

std::vector<Value> Declarations::enum_members(const std::string& name) {
  const TypePtr type = find_type(name);
  if (!type || type->kind() != ops::TypeKind::kEnum) return {};
  return enum_members_[name];
}

std::optional<Value> Declarations::enum_member(const std::string& name, std::string_view member) {
  for (const Value& value : enum_members(name)) {
    if (value.to_enum()->name == member) return value;
  }
  return std::nullopt;
}

std::vector<Value> Declarations::field_defaults(const std::string& name) {
  const Symbol symbol = find(name);
  const TypePtr type = find_type(name);
  std::vector<Value> out;
  if (symbol.kind != Symbol::Kind::kClass || !type || type->kind() != ops::TypeKind::kTuple) return out;
  size_t i = 0;
  for (const FieldDef& field : symbol.class_def->fields) {
    if (!field.annotation) continue;
    const TypePtr& field_type = type->contained()[i++];
    if (!field.value) continue;
    std::optional<Value> value = literal(*symbol.tree, *field.value, field_type);
    if (!value) symbol.tree->source.fail(field.begin, "the default of a field must be a literal");
    out.push_back(std::move(*value));
  }
  return out;
}

// ---- signatures

const Signature* Declarations::find_signature(const std::string& name) {
  if (const auto it = signatures_.find(name); it != signatures_.end()) return it->second.get();
  const Symbol symbol = find(name);
  if (!symbol.function) return nullptr;
  return (signatures_[name] = make_signature(name, symbol)).get();
}

std::unique_ptr<Signature> Declarations::make_signature(const std::string& name, const Symbol& symbol) {
  const SourceTree& tree = *symbol.tree;
  auto out = std::make_unique<Signature>();
  out->symbol = symbol;
  out->name = out->schema.name = name;
  for (const ParamDef& param : symbol.function->params) {
    ops::Argument argument;
    argument.name = param.name;
    argument.is_keyword_only = param.is_keyword_only;
    if (param.annotation) {
      argument.type = parse_type(tree, *param.annotation);
    } else if (out->schema.arguments.empty() && symbol.class_def) {
      argument.type = find_type(symbol.class_name);
    } else {
      argument.type = ops::tensor_type();
    }
    if (param.default_value) {
      argument.default_value = literal(tree, *param.default_value, argument.type);
      if (!argument.default_value) tree.source.fail(param.begin, "the default of a parameter must be a literal");
    }
    out->schema.arguments.push_back(std::move(argument));
  }
  ops::Argument returned;
  out->has_return_type = symbol.function->return_annotation != nullptr;
  returned.type = out->has_return_type ? parse_type(tree, *symbol.function->return_annotation) : ops::tensor_type();
  out->schema.returns.push_back(std::move(returned));
  return out;
}

// ---- names

std::vector<std::string> Declarations::function_names() {
  std::vector<std::string> out;
  for (auto& [module, file] : files_) {
    for (const FunctionDef* def : parsed(file).functions) out.push_back(module + "." + std::string(def->name));
  }
  return out;
}

std::vector<std::string> Declarations::class_names() {
  std::vector<std::string> out;
  for (auto& [module, file] : files_) {
    for (const ClassDef* def : parsed(file).classes) out.push_back(module + "." + std::string(def->name));
  }
  return out;
}

const Value& Declarations::constant(const SourceTree& tree, const Expr& expr, std::string_view name) const {
  size_t index = 0;
  const bool is_number =
      name.starts_with("c") && name.size() > 1 &&
      std::from_chars(name.data() + 1, name.data() + name.size(), index).ptr == name.data() + name.size();
  if (!is_number || index >= constants_.size()) {
    tree.source.fail(expr.begin,
                     concat("constant '", name, "' is not there; the archive has ", constants_.size(), " constants"));
  }
  return constants_[index];
}

}  // namespace tensord::jit
