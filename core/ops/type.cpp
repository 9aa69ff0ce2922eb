#include "core/ops/type.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"

namespace tensord::ops {
namespace {

struct SimpleName {
  TypeKind kind;
  const char* name;
};
constexpr SimpleName kSimple[] = {
    {TypeKind::kTensor, "Tensor"},       {TypeKind::kInt, "int"},
    {TypeKind::kFloat, "float"},         {TypeKind::kComplex, "complex"},
    {TypeKind::kBool, "bool"},           {TypeKind::kString, "str"},
    {TypeKind::kNone, "NoneType"},       {TypeKind::kAny, "Any"},
    {TypeKind::kNumber, "number"},       {TypeKind::kDevice, "Device"},
    {TypeKind::kGenerator, "Generator"}, {TypeKind::kStorage, "Storage"},
    {TypeKind::kStream, "Stream"},
};

std::string join(const std::vector<TypePtr>& types) {
  std::string out;
  for (const TypePtr& type : types) out += (out.empty() ? "" : ", ") + type->str();
  return out;
}

bool same_members(const Type& a, const Type& b) {
  return std::equal(a.contained().begin(), a.contained().end(), b.contained().begin(), b.contained().end(),
                    [](const TypePtr& x, const TypePtr& y) { return same_type(*x, *y); });
}

}  // namespace

Type::Type(TypeKind kind, std::string name, std::vector<TypePtr> contained, std::vector<std::string> field_names)
    : kind_(kind), name_(std::move(name)), contained_(std::move(contained)), field_names_(std::move(field_names)) {
  constexpr uint32_t kMaxDepth = 256, kMaxSize = 1 << 16;
  for (const TypePtr& type : contained_) {
    depth_ = std::max(depth_, type->depth_ + 1);
    size_ += type->size_;
    if (depth_ > kMaxDepth) fail(ErrorCode::kInvalidArgument, "a type is nested deeper than ", kMaxDepth);
    if (size_ > kMaxSize) fail(ErrorCode::kInvalidArgument, "a type is made of more than ", kMaxSize, " types");
  }
}

std::string Type::str() const {
  switch (kind_) {
    case TypeKind::kOptional: return "Optional[" + element()->str() + "]";
    case TypeKind::kList: return "List[" + element()->str() + "]";
    case TypeKind::kFuture: return "Future[" + element()->str() + "]";
    case TypeKind::kDict: return "Dict[" + join(contained_) + "]";
    case TypeKind::kTuple:
      if (!name_.empty()) return name_;
      return contained_.empty() ? "Tuple[()]" : "Tuple[" + join(contained_) + "]";
    case TypeKind::kUnion: return "Union[" + join(contained_) + "]";
    default: break;
  }
  for (const SimpleName& simple : kSimple) {
    if (simple.kind == kind_) return simple.name;
  }
  return name_;
}

int ClassType::find_attribute(std::string_view name) const {
  const auto found = slots_.find(name);
  return found == slots_.end() ? -1 : found->second;
}

void ClassType::add_attribute(std::string name, TypePtr type) {
  slots_.emplace(name, static_cast<int>(attributes_.size()));
  attributes_.push_back({std::move(name), std::move(type)});
}

TypePtr simple_type(TypeKind kind) {
  static const auto types = [] {
    std::array<TypePtr, static_cast<size_t>(TypeKind::kOpaque) + 1> out;
    for (const SimpleName& simple : kSimple) {
      out[static_cast<size_t>(simple.kind)] = std::make_shared<const Type>(simple.kind);
    }
    return out;
  }();
  const TypePtr& type = types[static_cast<size_t>(kind)];
  check_internal(type != nullptr, "simple_type of a composed type");
  return type;
}

TypePtr optional_type(TypePtr element) {
  const TypeKind kind = element->kind();
  if (kind == TypeKind::kOptional || kind == TypeKind::kNone || kind == TypeKind::kAny) return element;
  return std::make_shared<const Type>(TypeKind::kOptional, "", std::vector{std::move(element)});
}
TypePtr list_type(TypePtr element) {
  return std::make_shared<const Type>(TypeKind::kList, "", std::vector{std::move(element)});
}
TypePtr dict_type(TypePtr key, TypePtr value) {
  return std::make_shared<const Type>(TypeKind::kDict, "", std::vector{std::move(key), std::move(value)});
}
TypePtr tuple_type(std::vector<TypePtr> members) {
  return std::make_shared<const Type>(TypeKind::kTuple, "", std::move(members));
}
TypePtr named_tuple_type(std::string name, std::vector<std::string> field_names, std::vector<TypePtr> members) {
  return std::make_shared<const Type>(TypeKind::kTuple, std::move(name), std::move(members), std::move(field_names));
}
TypePtr union_type(std::vector<TypePtr> members) {
  return std::make_shared<const Type>(TypeKind::kUnion, "", std::move(members));
}
TypePtr future_type(TypePtr element) {
  return std::make_shared<const Type>(TypeKind::kFuture, "", std::vector{std::move(element)});
}
TypePtr var_type(std::string name) { return std::make_shared<const Type>(TypeKind::kVar, std::move(name)); }
TypePtr enum_type(std::string name, TypePtr value_type) {
  return std::make_shared<const Type>(TypeKind::kEnum, std::move(name), std::vector{std::move(value_type)});
}
TypePtr interface_type(std::string name) { return std::make_shared<const Type>(TypeKind::kInterface, std::move(name)); }
TypePtr function_type(std::string name) { return std::make_shared<const Type>(TypeKind::kFunction, std::move(name)); }
TypePtr opaque_type(std::string name) { return std::make_shared<const Type>(TypeKind::kOpaque, std::move(name)); }

bool same_type(const Type& a, const Type& b) {
  if (&a == &b) return true;
  if (a.kind() != b.kind() || a.name() != b.name()) return false;
  // A named type is identified by its name; its members may refer back to it.
  if (!a.name().empty()) return true;
  return same_members(a, b);
}

bool is_subtype(const Type& sub, const Type& super) {
  if (same_type(sub, super)) return true;
  if (sub.kind() == TypeKind::kUnion) {
    return std::all_of(sub.contained().begin(), sub.contained().end(),
                       [&](const TypePtr& member) { return is_subtype(*member, super); });
  }
  switch (super.kind()) {
    case TypeKind::kAny: return true;
    case TypeKind::kNumber:
      return sub.kind() == TypeKind::kInt || sub.kind() == TypeKind::kFloat || sub.kind() == TypeKind::kComplex ||
             sub.kind() == TypeKind::kBool;
    case TypeKind::kOptional:
      if (sub.kind() == TypeKind::kNone) return true;
      if (sub.kind() == TypeKind::kOptional) return is_subtype(*sub.element(), *super.element());
      return is_subtype(sub, *super.element());
    case TypeKind::kUnion: {
      const auto in_super = [&](const Type& member) {
        return std::any_of(super.contained().begin(), super.contained().end(),
                           [&](const TypePtr& candidate) { return is_subtype(member, *candidate); });
      };
      if (sub.kind() == TypeKind::kOptional) return in_super(*none_type()) && in_super(*sub.element());
      return in_super(sub);
    }
    case TypeKind::kTuple:
      // A NamedTuple is a tuple; a tuple becomes a NamedTuple only by construction.
      if (sub.kind() != TypeKind::kTuple || !super.name().empty()) return false;
      return std::equal(sub.contained().begin(), sub.contained().end(), super.contained().begin(),
                        super.contained().end(), [](const TypePtr& x, const TypePtr& y) { return is_subtype(*x, *y); });
    case TypeKind::kFuture: return sub.kind() == TypeKind::kFuture && is_subtype(*sub.element(), *super.element());
    case TypeKind::kInterface: return sub.kind() == TypeKind::kClass;
    case TypeKind::kEnum: return sub.kind() == TypeKind::kEnum && super.name() == kAnyEnum;
    default: return false;
  }
}

TypePtr unify(const TypePtr& a, const TypePtr& b) {
  if (is_subtype(a, b)) return b;
  if (is_subtype(b, a)) return a;
  if (a->kind() == TypeKind::kNone) return optional_type(b);
  if (b->kind() == TypeKind::kNone) return optional_type(a);
  if (a->kind() == TypeKind::kOptional || b->kind() == TypeKind::kOptional) {
    const TypePtr& ea = a->kind() == TypeKind::kOptional ? a->element() : a;
    const TypePtr& eb = b->kind() == TypeKind::kOptional ? b->element() : b;
    const TypePtr element = unify(ea, eb);
    return element ? optional_type(element) : nullptr;
  }
  if (a->kind() == TypeKind::kTuple && b->kind() == TypeKind::kTuple &&
      a->contained().size() == b->contained().size()) {
    std::vector<TypePtr> members;
    for (size_t i = 0; i < a->contained().size(); ++i) {
      members.push_back(unify(a->contained()[i], b->contained()[i]));
      if (!members.back()) return nullptr;
    }
    return tuple_type(std::move(members));
  }
  return nullptr;
}

}  // namespace tensord::ops
