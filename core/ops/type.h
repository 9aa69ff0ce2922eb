#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tensord::ops {

// The types of TorchScript. ScalarType, Layout and MemoryFormat are `int` there.
enum class TypeKind {
  kTensor,
  kInt,
  kFloat,
  kComplex,
  kBool,
  kString,
  kNone,
  kAny,
  kNumber,  // Scalar: int, float, bool or complex
  kDevice,
  kGenerator,
  kStorage,
  kStream,
  kOptional,
  kList,
  kDict,
  kTuple,
  kUnion,
  kFuture,
  kClass,      // script class or module; see ClassType
  kInterface,  // methods by name; name() is the qualified name
  kEnum,       // name() is the qualified name, contained()[0] the type of the values
  kVar,        // type variable of a schema: "t", "key"
  kFunction,   // a function value; name() is the qualified name
  kOpaque,     // engine-made object, such as packed weights: name() is its class
};

class Type;
class ClassType;
using TypePtr = std::shared_ptr<const Type>;

// Immutable except for class attributes, which are added while the class is compiled.
class Type {
 public:
  // Throws Error{kInvalidArgument} if nesting makes it deeper or larger than any script needs, so that walking a type
  // is always cheap.
  Type(TypeKind kind, std::string name = {}, std::vector<TypePtr> contained = {},
       std::vector<std::string> field_names = {});
  virtual ~Type() = default;

  TypeKind kind() const { return kind_; }
  const std::string& name() const { return name_; }
  // Optional/List/Future: 1; Dict: key, value; Tuple/Union: members.
  const std::vector<TypePtr>& contained() const { return contained_; }
  const TypePtr& element() const { return contained_.front(); }
  // Names of a NamedTuple's fields; empty for a plain tuple. name() is its qualified name.
  const std::vector<std::string>& field_names() const { return field_names_; }

  // In annotation syntax: "Optional[List[Tensor]]", "__torch__.M".
  std::string str() const;

 private:
  TypeKind kind_;
  std::string name_;
  std::vector<TypePtr> contained_;
  std::vector<std::string> field_names_;
  uint32_t depth_ = 1, size_ = 1;  // as a tree: a type that occurs twice is counted twice
};

struct Attribute {
  std::string name;
  TypePtr type;
};

class ClassType final : public Type {
 public:
  ClassType(std::string qualified_name, bool is_module)
      : Type(TypeKind::kClass, std::move(qualified_name)), is_module_(is_module) {}
  bool is_module() const { return is_module_; }
  const std::vector<Attribute>& attributes() const { return attributes_; }
  // Index of an attribute's slot in an Object, or -1.
  int find_attribute(std::string_view name) const;
  void add_attribute(std::string name, TypePtr type);
  // Names listed in __parameters__ and __buffers__.
  std::vector<std::string> parameter_names, buffer_names;

 private:
  bool is_module_;
  std::vector<Attribute> attributes_;
  std::map<std::string, int, std::less<>> slots_;  // of attributes, by name; the first if there are several
};

// Shared instances of the simple types.
TypePtr simple_type(TypeKind kind);
inline TypePtr tensor_type() { return simple_type(TypeKind::kTensor); }
inline TypePtr int_type() { return simple_type(TypeKind::kInt); }
inline TypePtr float_type() { return simple_type(TypeKind::kFloat); }
inline TypePtr bool_type() { return simple_type(TypeKind::kBool); }
inline TypePtr string_type() { return simple_type(TypeKind::kString); }
inline TypePtr none_type() { return simple_type(TypeKind::kNone); }
inline TypePtr any_type() { return simple_type(TypeKind::kAny); }
inline TypePtr number_type() { return simple_type(TypeKind::kNumber); }
inline TypePtr device_type() { return simple_type(TypeKind::kDevice); }
TypePtr optional_type(TypePtr element);  // an Optional or None is returned as it is
TypePtr list_type(TypePtr element);
TypePtr dict_type(TypePtr key, TypePtr value);
TypePtr tuple_type(std::vector<TypePtr> members);
TypePtr named_tuple_type(std::string qualified_name, std::vector<std::string> field_names,
                         std::vector<TypePtr> members);
TypePtr union_type(std::vector<TypePtr> members);
TypePtr future_type(TypePtr element);
TypePtr var_type(std::string name);
TypePtr enum_type(std::string qualified_name, TypePtr value_type);
// Name of the enum type that stands for every enum in a schema.
inline constexpr const char* kAnyEnum = "AnyEnumType";
TypePtr interface_type(std::string qualified_name);
TypePtr function_type(std::string qualified_name);
TypePtr opaque_type(std::string name);

// Structural equality; classes by qualified name.
bool same_type(const Type& a, const Type& b);
inline bool same_type(const TypePtr& a, const TypePtr& b) { return same_type(*a, *b); }
// Whether a value of type `sub` can be used as `super` without conversion: T <: Optional[T] <: Any, int <: number,
// tuples member by member. Every class is assumed to implement every interface; the call by name decides.
bool is_subtype(const Type& sub, const Type& super);
inline bool is_subtype(const TypePtr& sub, const TypePtr& super) { return is_subtype(*sub, *super); }
// The smallest common supertype (an Optional for a type and None, never a Union); null if there is none.
TypePtr unify(const TypePtr& a, const TypePtr& b);

// Finds a type by its qualified name; returns null if it is unknown.
using TypeResolver = std::function<TypePtr(const std::string& qualified_name)>;
// Parses annotation syntax ("Dict[str, List[Tensor]]"). Throws Error{kInvalidArgument} naming the string; nesting is
// bounded.
TypePtr parse_annotation(std::string_view text, const TypeResolver& resolver);

}  // namespace tensord::ops
