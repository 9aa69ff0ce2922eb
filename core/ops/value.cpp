#include "core/ops/value.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>

#include "core/tensor/complex.h"

namespace tensord::ops {

void Scalar::fail_complex() {
  fail(ErrorCode::kUnimplemented, "a complex number was given where a real number is expected");
}

Value::Value(std::complex<double> value) : Value(Tag::kComplex, make_intrusive<ComplexObject>(value).detach()) {}
Value::Value(const Scalar& scalar) {
  if (scalar.is_complex())
    *this = Value(scalar.to_complex());
  else if (scalar.is_float())
    *this = Value(scalar.to_double());
  else if (scalar.is_int())
    *this = Value(scalar.to_int());
  else
    *this = Value(scalar.to_bool());
}
Value::Value(const Tensor& tensor) : Value(Tag::kTensor, tensor.impl()) {
  if (payload_.p) payload_.p->add_ref();
}
Value::Value(std::string text) : Value(Tag::kString, make_intrusive<StringObject>(std::move(text)).detach()) {}
Value::Value(List list) : Value(Tag::kList, list.detach()) {}
Value::Value(Dict dict) : Value(Tag::kDict, dict.detach()) {}
Value::Value(Tuple tuple) : Value(Tag::kTuple, tuple.detach()) {}
Value::Value(ObjectPtr object) : Value(Tag::kObject, object.detach()) {}
Value::Value(IntrusivePtr<EnumObject> value) : Value(Tag::kEnum, value.detach()) {}
Value::Value(IntrusivePtr<FunctionObject> function) : Value(Tag::kFunction, function.detach()) {}
Value::Value(IntrusivePtr<FutureObject> future) : Value(Tag::kFuture, future.detach()) {}

const char* Value::tag_name() const {
  static constexpr const char* kNames[] = {"None",     "bool",   "int",    "float",  "Device", "Tensor",
                                           "str",      "list",   "dict",   "tuple",  "object", "enum",
                                           "function", "Future", "opaque", "complex"};
  return kNames[static_cast<size_t>(tag_)];
}

void Value::fail_tag(Tag expected) const {
  Value probe;
  probe.tag_ = expected;
  const char* name = probe.tag_name();
  probe.tag_ = Tag::kNone;
  fail(ErrorCode::kInvalidArgument, "expected a value of type ", name, " but got ", tag_name());
}

Scalar Value::to_scalar() const {
  switch (tag_) {
    case Tag::kBool: return Scalar(payload_.i != 0);
    case Tag::kInt: return Scalar(payload_.i);
    case Tag::kFloat: return Scalar(payload_.d);
    case Tag::kComplex: return Scalar(static_cast<ComplexObject*>(payload_.p)->value);
    case Tag::kTensor: {
      const Tensor& tensor = to_tensor();
      if (tensord::is_complex(tensor.dtype())) return Scalar(item_complex(tensor));
      if (is_floating(tensor.dtype())) return Scalar(tensor.item_double());
      return tensor.dtype() == DType::kBool ? Scalar(tensor.item_bool()) : Scalar(tensor.item_int());
    }
    default: fail(ErrorCode::kInvalidArgument, "expected a number but got ", tag_name());
  }
}

Device Value::to_device() const {
  if (is_string()) return parse_device(to_string());
  expect(Tag::kDevice);
  return {static_cast<DeviceKind>(payload_.i >> 8), static_cast<int8_t>(payload_.i & 0xff)};
}

bool Value::is_same(const Value& other) const {
  if (tag_ != other.tag_) return false;
  switch (tag_) {
    case Tag::kNone: return true;
    case Tag::kFloat: return payload_.d == other.payload_.d;
    case Tag::kBool:
    case Tag::kInt:
    case Tag::kDevice: return payload_.i == other.payload_.i;
    case Tag::kString: return to_string() == other.to_string();
    case Tag::kComplex: return to_complex() == other.to_complex();
    default: return payload_.p == other.payload_.p;
  }
}

namespace {

// Compares nested values; lists of Any may contain each other, or the same list many times.
class Comparison {
 public:
  bool equal(const Value& a, const Value& b) {
    if ((a.is_complex() && (b.is_complex() || b.is_number())) || (b.is_complex() && a.is_number())) {
      return a.to_complex() == b.to_complex();
    }
    if (a.is_number() && b.is_number()) {
      if (a.is_float() || b.is_float()) return a.to_scalar().to_double() == b.to_scalar().to_double();
      return a.to_scalar().to_int() == b.to_scalar().to_int();
    }
    if (a.tag() != b.tag()) return false;
    switch (a.tag()) {
      case Value::Tag::kTensor: {
        if (a.is_same(b)) return true;
        fail(ErrorCode::kInvalidArgument, "tensors inside of containers cannot be compared with ==");
      }
      case Value::Tag::kList: return equal_items(a.to_list()->items, b.to_list()->items);
      case Value::Tag::kTuple: return equal_items(a.to_tuple()->items, b.to_tuple()->items);
      case Value::Tag::kDict: return equal_dicts(*a.to_dict(), *b.to_dict());
      case Value::Tag::kEnum:
        return a.to_enum()->name == b.to_enum()->name && same_type(a.to_enum()->type, b.to_enum()->type);
      default: return a.is_same(b);
    }
  }

 private:
  static constexpr int kMaxDepth = 1000;
  static constexpr int64_t kMaxContainers = 1 << 24;

  void enter() {
    if (++depth_ > kMaxDepth || ++containers_ > kMaxContainers) {
      fail(ErrorCode::kResourceExhausted, "==: the values are nested too deeply");
    }
  }

  bool equal_items(const std::vector<Value>& a, const std::vector<Value>& b) {
    enter();
    const bool result = std::equal(a.begin(), a.end(), b.begin(), b.end(),
                                   [this](const Value& x, const Value& y) { return equal(x, y); });
    --depth_;
    return result;
  }

  bool equal_dicts(const DictObject& a, const DictObject& b) {
    enter();
    const bool result =
        a.items().size() == b.items().size() && std::all_of(a.items().begin(), a.items().end(), [&](const auto& item) {
          const auto index = b.find(item.first);
          return index >= 0 && equal(item.second, b.items()[static_cast<size_t>(index)].second);
        });
    --depth_;
    return result;
  }

  int depth_ = 0;
  int64_t containers_ = 0;
};

}  // namespace

bool Value::equals(const Value& other) const { return Comparison().equal(*this, other); }

// --- dict

namespace {

// Keys compare as in Python, so an integral float key must hash as the int.
bool keys_equal(const Value& a, const Value& b) {
  if (a.is_tensor() || b.is_tensor()) return a.is_same(b);
  return a.equals(b);
}

constexpr size_t kLinearLimit = 8;

}  // namespace

size_t DictObject::hash(const Value& key) const {
  switch (key.tag()) {
    case Value::Tag::kString: return std::hash<std::string>()(key.to_string());
    case Value::Tag::kTensor: return std::hash<const void*>()(key.to_tensor().impl());
    case Value::Tag::kEnum: return std::hash<std::string>()(key.to_enum()->name);
    case Value::Tag::kDevice: return 7;
    case Value::Tag::kComplex:
      return std::hash<double>()(key.to_complex().real());  // equal to the hash of an equal float
    default: return std::hash<double>()(key.to_scalar().to_double());
  }
}

void DictObject::rebuild() {
  slots_.clear();
  if (items_.size() <= kLinearLimit) return;
  size_t capacity = 32;
  while (capacity < items_.size() * 2) capacity *= 2;
  slots_.assign(capacity, -1);
  for (size_t i = 0; i < items_.size(); ++i) {
    size_t slot = hash(items_[i].first) & (capacity - 1);
    while (slots_[slot] >= 0) slot = (slot + 1) & (capacity - 1);
    slots_[slot] = static_cast<int32_t>(i);
  }
}

std::ptrdiff_t DictObject::find(const Value& key) const {
  if (slots_.empty()) {
    for (size_t i = 0; i < items_.size(); ++i) {
      if (keys_equal(items_[i].first, key)) return static_cast<std::ptrdiff_t>(i);
    }
    return -1;
  }
  size_t slot = hash(key) & (slots_.size() - 1);
  while (slots_[slot] >= 0) {
    if (keys_equal(items_[static_cast<size_t>(slots_[slot])].first, key)) return slots_[slot];
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return -1;
}

void DictObject::set(Value key, Value value) {
  const auto index = find(key);
  if (index >= 0) {
    items_[static_cast<size_t>(index)].second = std::move(value);
    return;
  }
  check(key.is_string() || key.is_number() || key.is_tensor() || key.is_enum() || key.is_device() || key.is_complex(),
        "a value of type ", key.tag_name(), " cannot be a dict key");
  items_.emplace_back(std::move(key), std::move(value));
  if (slots_.empty() ? items_.size() > kLinearLimit : items_.size() * 2 > slots_.size()) {
    rebuild();
  } else if (!slots_.empty()) {
    size_t slot = hash(items_.back().first) & (slots_.size() - 1);
    while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = static_cast<int32_t>(items_.size() - 1);
  }
}

bool DictObject::erase(const Value& key) {
  const auto index = find(key);
  if (index < 0) return false;
  items_.erase(items_.begin() + index);
  rebuild();
  return true;
}

void DictObject::clear() {
  items_.clear();
  slots_.clear();
}

Value& Object::attribute(std::string_view name) {
  const int slot = type->find_attribute(name);
  if (slot < 0) fail(ErrorCode::kNotFound, type->name(), " has no attribute \"", name, "\"");
  return slots[static_cast<size_t>(slot)];
}

// --- freeing

namespace {

constexpr int kMaxDropDepth = 100;
thread_local int drop_depth = 0;
thread_local std::vector<Value>* postponed = nullptr;  // too deep to free now; belongs to the outermost drop

void keep_for_later(Value& value) { postponed->push_back(std::move(value)); }
void keep_for_later(std::pair<Value, Value>& entry) { keep_for_later(entry.second); }

template <class Item>
void drop(std::vector<Item>& items) noexcept {
  if (items.empty()) return;
  if (drop_depth >= kMaxDropDepth) {
    try {
      for (Item& item : items) keep_for_later(item);
    } catch (const std::bad_alloc&) {
      // The rest is freed here, with more stack left.
    }
    return;
  }
  std::vector<Value> own;
  if (drop_depth == 0) postponed = &own;
  ++drop_depth;
  items.clear();
  while (drop_depth == 1 && !own.empty()) {
    const Value next = std::move(own.back());
    own.pop_back();
  }
  if (--drop_depth == 0) postponed = nullptr;
}

}  // namespace

void drop_items(std::vector<Value>& items) noexcept { drop(items); }
void drop_items(std::vector<std::pair<Value, Value>>& items) noexcept { drop(items); }

// --- making values

List make_list(TypePtr element, std::vector<Value> items) {
  return make_intrusive<ListObject>(std::move(element), std::move(items));
}
Value make_int_list(std::span<const int64_t> values) {
  return make_list(int_type(), std::vector<Value>(values.begin(), values.end()));
}
Value make_tensor_list(const std::vector<Tensor>& tensors) {
  return make_list(tensor_type(), std::vector<Value>(tensors.begin(), tensors.end()));
}
Value make_tuple(std::vector<Value> items) { return make_intrusive<TupleObject>(std::move(items)); }

const TensorImpl* find_unstrided(std::span<const Value> values) {
  for (const Value& value : values) {
    if (value.is_tensor() && !value.is_strided()) return value.to_tensor().impl();
    if (!value.is_list()) continue;
    // Only lists of tensors are searched: others may be deep, or contain themselves.
    const Type* element = value.to_list()->element.get();
    while (element->kind() == TypeKind::kOptional) element = element->element().get();
    if (element->kind() != TypeKind::kTensor) continue;
    if (const TensorImpl* found = find_unstrided(value.to_list()->items)) return found;
  }
  return nullptr;
}

std::string to_string(std::complex<double> value) {
  const auto part = [](double x) {
    char buffer[40];
    for (const int digits : {15, 16, 17}) {  // the fewest digits that give the same number
      std::snprintf(buffer, sizeof(buffer), "%.*g", digits, x);
      if (std::strtod(buffer, nullptr) == x) break;
    }
    return std::string(buffer);
  };
  std::string imaginary = part(value.imag()) + "j";
  if (value.real() == 0 && !std::signbit(value.real())) return imaginary;
  return "(" + part(value.real()) + (imaginary.front() == '-' ? "" : "+") + imaginary + ")";
}

TypePtr type_of(const Value& value) {
  switch (value.tag()) {
    case Value::Tag::kNone: return none_type();
    case Value::Tag::kBool: return bool_type();
    case Value::Tag::kInt: return int_type();
    case Value::Tag::kFloat: return float_type();
    case Value::Tag::kDevice: return device_type();
    case Value::Tag::kComplex: return simple_type(TypeKind::kComplex);
    case Value::Tag::kTensor: return tensor_type();
    case Value::Tag::kString: return string_type();
    case Value::Tag::kList: return list_type(value.to_list()->element);
    case Value::Tag::kDict: return dict_type(value.to_dict()->key, value.to_dict()->value);
    case Value::Tag::kTuple: {
      if (value.to_tuple()->type) return value.to_tuple()->type;
      std::vector<TypePtr> members;
      for (const Value& item : value.to_tuple()->items) members.push_back(type_of(item));
      return tuple_type(std::move(members));
    }
    case Value::Tag::kObject: return value.to_object()->type;
    case Value::Tag::kEnum: return value.to_enum()->type;
    case Value::Tag::kFunction: return function_type(value.to_function()->name);
    case Value::Tag::kFuture: return future_type(type_of(value.to_future()->value()));
    case Value::Tag::kOpaque: return opaque_type(value.to_opaque()->class_name());
  }
  return any_type();
}

bool is_instance(const Value& value, const Type& type) {
  switch (type.kind()) {
    case TypeKind::kAny: return true;
    case TypeKind::kOptional: return value.is_none() || is_instance(value, *type.element());
    case TypeKind::kUnion:
      return std::any_of(type.contained().begin(), type.contained().end(),
                         [&](const TypePtr& member) { return is_instance(value, *member); });
    // The bare names "list", "dict" and "tuple" are containers of anything.
    case TypeKind::kList:
      if (type.element()->kind() == TypeKind::kAny) return value.is_list();
      return is_subtype(*type_of(value), type);
    case TypeKind::kDict:
      if (type.contained()[1]->kind() == TypeKind::kAny) return value.is_dict();
      return is_subtype(*type_of(value), type);
    case TypeKind::kTuple: {
      if (!value.is_tuple()) return false;
      if (type.name() == "tuple") return true;
      const auto& items = value.to_tuple()->items;
      return std::equal(items.begin(), items.end(), type.contained().begin(), type.contained().end(),
                        [](const Value& item, const TypePtr& member) { return is_instance(item, *member); });
    }
    default: return is_subtype(*type_of(value), type);
  }
}

}  // namespace tensord::ops
