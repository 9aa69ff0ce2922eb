#include "core/jit/frontend/overload.h"

#include <algorithm>

#include "core/ops/schema.h"

namespace tensord::jit {

using ops::Type;
using ops::TypeKind;
using ops::TypePtr;

namespace {

const Type& wanted_if_given(const Type& type) { return type.kind() == TypeKind::kOptional ? *type.element() : type; }

bool all_fit(const Type& element, std::span<const TypePtr> types) {
  return std::all_of(types.begin(), types.end(), [&](const TypePtr& type) {
    TypeBindings bindings;
    return match_type(element, type, bindings);
  });
}

// Whether the argument is a list or dict literal in the call. A list in a variable must keep its identity: an
// operator's changes to a converted copy would be lost.
bool is_written_here(const GraphValue& value, NodeKind kind) {
  return value.node() && value.node()->kind() == kind && !value.has_uses() && value.name().empty();
}

Conversion list_conversion(const Type& formal, const GraphValue& actual, int64_t fixed_list_size) {
  const Type& element = *formal.element();
  const Type& type = *actual.type();
  if (type.kind() == TypeKind::kTuple && all_fit(element, type.contained())) return Conversion::kTupleToList;
  if (type.kind() == TypeKind::kList && is_written_here(actual, NodeKind::kListConstruct)) {
    const auto items = actual.node()->inputs();
    const bool fits = std::all_of(items.begin(), items.end(),
                                  [&](const GraphValue* item) { return ops::is_subtype(*item->type(), element); });
    if (fits && element.kind() != TypeKind::kVar) return Conversion::kListLiteral;
  }
  // A list of indices: an operator that accepts missing indices also accepts a list without missing ones.
  if (element.kind() == TypeKind::kOptional && element.element()->kind() == TypeKind::kTensor &&
      type.kind() == TypeKind::kList && type.element()->kind() == TypeKind::kTensor)
    return Conversion::kNone;
  if (fixed_list_size > 0) {
    if (ops::is_subtype(type, element)) return Conversion::kRepeat;
    if (element.kind() == TypeKind::kFloat && type.kind() == TypeKind::kInt) return Conversion::kRepeat;
  }
  return Conversion::kMismatch;
}

}  // namespace

bool is_implicit_cast(Conversion conversion) {
  return conversion == Conversion::kTensorToInt || conversion == Conversion::kTensorToFloat ||
         conversion == Conversion::kTensorToNumber || conversion == Conversion::kIntToFloat ||
         conversion == Conversion::kStringToDevice || conversion == Conversion::kListLiteral;
}

Conversion find_conversion(const Type& formal, const GraphValue& actual, int64_t fixed_list_size,
                           TypeBindings& bindings) {
  TypeBindings attempt = bindings;
  if (match_type(formal, actual.type(), attempt)) {
    bindings = std::move(attempt);
    return Conversion::kNone;
  }
  const Type& wanted = wanted_if_given(formal);
  const TypeKind kind = actual.type()->kind();
  switch (wanted.kind()) {
    case TypeKind::kInt: return kind == TypeKind::kTensor ? Conversion::kTensorToInt : Conversion::kMismatch;
    case TypeKind::kFloat:
      if (kind == TypeKind::kInt) return Conversion::kIntToFloat;
      return kind == TypeKind::kTensor ? Conversion::kTensorToFloat : Conversion::kMismatch;
    case TypeKind::kNumber: return kind == TypeKind::kTensor ? Conversion::kTensorToNumber : Conversion::kMismatch;
    case TypeKind::kDevice: return kind == TypeKind::kString ? Conversion::kStringToDevice : Conversion::kMismatch;
    case TypeKind::kList: return list_conversion(wanted, actual, fixed_list_size);
    case TypeKind::kDict: {
      const bool is_empty = is_written_here(actual, NodeKind::kDictConstruct) && actual.node()->inputs().empty();
      return is_empty ? Conversion::kListLiteral : Conversion::kMismatch;
    }
    default: return Conversion::kMismatch;
  }
}

namespace {

// Binds one call. If the arguments do not match, `reason` says why.
class CallBinder {
 public:
  CallBinder(const ops::Schema& schema, std::span<GraphValue* const> positional, std::span<const NamedValue> keywords,
             std::string* reason)
      : schema_(schema), positional_(positional), keywords_(keywords), reason_(reason) {}

  std::optional<BoundCall> bind() {
    for (const NamedValue& keyword : keywords_) {
      if (schema_.find_argument(keyword.name) < 0) return reject("there is no parameter '", keyword.name, "'");
    }
    size_t used = 0;
    for (size_t i = 0; i < schema_.arguments.size(); ++i) {
      if (!argument(i, used)) return std::nullopt;
    }
    if (used < positional_.size()) {
      if (!schema_.is_vararg) return reject("got ", positional_.size(), " arguments, expected at most ", used);
      call_.varargs.assign(positional_.begin() + static_cast<std::ptrdiff_t>(used), positional_.end());
    }
    return std::move(call_);
  }

 private:
  template <class... Parts>
  std::nullopt_t reject(const Parts&... parts) {
    if (reason_) *reason_ = concat(parts...);
    return std::nullopt;
  }

  bool argument(size_t i, size_t& used) {
    const ops::Argument& parameter = schema_.arguments[i];
    GraphValue* value = nullptr;
    for (const NamedValue& keyword : keywords_) {
      if (keyword.name == parameter.name) value = keyword.value;
    }
    const bool takes_positional = !parameter.is_keyword_only && used < positional_.size();
    if (takes_positional && value) {
      reject("argument '", parameter.name, "' is given twice");
      return false;
    }
    if (takes_positional) {
      if (gathers_rest(i, used)) {
        BoundArgument gathered;
        gathered.rest.assign(positional_.begin() + static_cast<std::ptrdiff_t>(used), positional_.end());
        gathered.is_gathered = true;
        call_.arguments.push_back(std::move(gathered));
        used = positional_.size();
        return true;
      }
      value = positional_[used++];
    }
    if (!value) {
      if (!parameter.default_value) {
        reject("argument '", parameter.name, "' is missing");
        return false;
      }
      call_.arguments.push_back({});
      return true;
    }
    const Conversion conversion = find_conversion(*parameter.type, *value, parameter.fixed_list_size, bindings_);
    if (conversion == Conversion::kMismatch) {
      reject("expected a value of type ", parameter.type->str(), " for argument '", parameter.name, "' but got ",
             value->type()->str());
      return false;
    }
    call_.has_cast |= is_implicit_cast(conversion);
    call_.arguments.push_back({value, conversion, {}, false});
    return true;
  }

  // x.view(2, 3) for view(int[] size): the last positional parameter is a list and takes the remaining arguments as its
  // items.
  bool gathers_rest(size_t i, size_t used) const {
    const ops::Argument& parameter = schema_.arguments[i];
    const Type& type = wanted_if_given(*parameter.type);
    if (type.kind() != TypeKind::kList || parameter.fixed_list_size > 0) return false;
    const bool is_last = i + 1 == schema_.arguments.size() || schema_.arguments[i + 1].is_keyword_only;
    const TypeKind element = type.element()->kind();
    if (!is_last || (element != TypeKind::kInt && element != TypeKind::kFloat)) return false;
    return std::all_of(positional_.begin() + static_cast<std::ptrdiff_t>(used), positional_.end(),
                       [&](const GraphValue* value) { return value->type()->kind() == element; });
  }

  const ops::Schema& schema_;
  std::span<GraphValue* const> positional_;
  std::span<const NamedValue> keywords_;
  std::string* reason_;
  BoundCall call_;
  TypeBindings bindings_;
};

}  // namespace

std::optional<BoundCall> bind_call(const ops::Schema& schema, std::span<GraphValue* const> positional,
                                   std::span<const NamedValue> keywords, std::string* reason) {
  return CallBinder(schema, positional, keywords, reason).bind();
}

}  // namespace tensord::jit
