#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/intrusive_ptr.h"
#include "core/ops/type.h"
#include "core/tensor/tensor.h"

namespace tensord::ops {

class Value;

// An int, float, bool or complex number that an operator takes. Reading a complex one as a real number throws: an
// operator that does not support complex numbers must not drop the imaginary part.
class Scalar {
 public:
  Scalar(bool value) : kind_(Kind::kBool), int_(value) {}
  Scalar(int64_t value) : kind_(Kind::kInt), int_(value) {}
  Scalar(int value) : Scalar(static_cast<int64_t>(value)) {}
  Scalar(double value) : kind_(Kind::kFloat), float_(value) {}
  template <class T>
  Scalar(const T*) = delete;  // C++ would convert a text to bool
  Scalar(std::complex<double> value) : kind_(Kind::kComplex), float_(value.real()), imaginary_(value.imag()) {}
  bool is_bool() const { return kind_ == Kind::kBool; }
  bool is_int() const { return kind_ == Kind::kInt; }
  bool is_float() const { return kind_ == Kind::kFloat; }
  bool is_complex() const { return kind_ == Kind::kComplex; }
  double to_double() const { return to<double>(); }
  int64_t to_int() const { return to<int64_t>(); }
  bool to_bool() const {
    if (is_complex()) return float_ != 0 || imaginary_ != 0;
    return is_float() ? float_ != 0 : int_ != 0;
  }
  template <class T>
  T to() const {
    if (is_complex()) [[unlikely]]
      fail_complex();
    return is_float() ? static_cast<T>(float_) : static_cast<T>(int_);
  }
  std::complex<double> to_complex() const {
    return is_complex() ? std::complex<double>(float_, imaginary_) : std::complex<double>(to_double());
  }
  // bool, int64, float32 or complex64 (of the default dtype): the dtype of the number in type promotion.
  DType dtype() const {
    if (is_complex()) return DType::kComplex64;
    return is_float() ? DType::kFloat32 : is_int() ? DType::kInt64 : DType::kBool;
  }

 private:
  [[noreturn]] static void fail_complex();
  enum class Kind : int8_t { kBool, kInt, kFloat, kComplex } kind_;
  union {
    int64_t int_;
    double float_;  // of a complex number: the real part
  };
  double imaginary_ = 0;
};

struct ComplexObject final : RefCounted {
  explicit ComplexObject(std::complex<double> value) : value(value) {}
  const std::complex<double> value;
};
struct StringObject final : RefCounted {
  explicit StringObject(std::string text) : text(std::move(text)) {}
  const std::string text;
};
struct ListObject;
struct DictObject;
struct TupleObject;
struct Object;
struct EnumObject;
struct FunctionObject;
class FutureObject;
// Base class of objects that kernels keep between calls (packed weights) and that are passed through the IR.
struct OpaqueObject : RefCounted {
  virtual std::string class_name() const = 0;
};

using List = IntrusivePtr<ListObject>;  // lists, dicts and objects have identity:
using Dict = IntrusivePtr<DictObject>;  // copies of the handle are the same list
using Tuple = IntrusivePtr<TupleObject>;
using ObjectPtr = IntrusivePtr<Object>;

// Any TorchScript value: a tag and 8 bytes. Strings, tuples and complex numbers are immutable.
class Value {
 public:
  enum class Tag : uint8_t {
    kNone,
    kBool,
    kInt,
    kFloat,
    kDevice,  // held inline
    kTensor,
    kString,
    kList,
    kDict,
    kTuple,
    kObject,
    kEnum,
    kFunction,
    kFuture,
    kOpaque,
    kComplex,
  };

  Value() = default;
  Value(bool value) : tag_(Tag::kBool) { payload_.i = value; }
  Value(int64_t value) : tag_(Tag::kInt) { payload_.i = value; }
  Value(int value) : Value(static_cast<int64_t>(value)) {}
  Value(double value) : tag_(Tag::kFloat) { payload_.d = value; }
  Value(DType dtype) : Value(static_cast<int64_t>(dtype)) {}
  Value(Device device) : tag_(Tag::kDevice) { payload_.i = static_cast<int64_t>(device.kind) << 8 | device.index; }
  Value(std::complex<double> value);
  Value(const Scalar& scalar);
  Value(const Tensor& tensor);  // an undefined tensor becomes None
  Value(std::string text);
  Value(const char* text) : Value(std::string(text)) {}
  Value(List list);
  Value(Dict dict);
  Value(Tuple tuple);
  Value(ObjectPtr object);
  Value(IntrusivePtr<EnumObject> value);
  Value(IntrusivePtr<FunctionObject> function);
  Value(IntrusivePtr<FutureObject> future);
  Value(IntrusivePtr<OpaqueObject> object) : Value(Tag::kOpaque, object.detach()) {}
  template <class T>
  Value(const std::optional<T>& value) {
    if (value) *this = Value(*value);
  }
  Value(const Value& other) : payload_(other.payload_), tag_(other.tag_) {
    if (is_counted()) payload_.p->add_ref();
  }
  Value(Value&& other) noexcept : payload_(other.payload_), tag_(std::exchange(other.tag_, Tag::kNone)) {}
  Value& operator=(Value other) noexcept {
    std::swap(payload_, other.payload_);
    std::swap(tag_, other.tag_);
    return *this;
  }
  ~Value() {
    if (is_counted()) payload_.p->release();
  }

  Tag tag() const { return tag_; }
  const char* tag_name() const;  // "Tensor", "int", "List" … for messages
  bool is_none() const { return tag_ == Tag::kNone; }
  bool is_bool() const { return tag_ == Tag::kBool; }
  bool is_int() const { return tag_ == Tag::kInt; }
  bool is_float() const { return tag_ == Tag::kFloat; }
  bool is_device() const { return tag_ == Tag::kDevice; }
  bool is_tensor() const { return tag_ == Tag::kTensor; }
  // A tensor that is not sparse or quantized.
  bool is_strided() const { return is_tensor() && payload_.tensor.is_strided(); }
  bool is_string() const { return tag_ == Tag::kString; }
  bool is_list() const { return tag_ == Tag::kList; }
  bool is_dict() const { return tag_ == Tag::kDict; }
  bool is_tuple() const { return tag_ == Tag::kTuple; }
  bool is_object() const { return tag_ == Tag::kObject; }
  bool is_enum() const { return tag_ == Tag::kEnum; }
  bool is_function() const { return tag_ == Tag::kFunction; }
  bool is_future() const { return tag_ == Tag::kFuture; }
  bool is_opaque() const { return tag_ == Tag::kOpaque; }
  bool is_complex() const { return tag_ == Tag::kComplex; }
  bool is_number() const { return is_bool() || is_int() || is_float(); }

  // These functions throw Error{kInvalidArgument} "expected int but got Tensor" for another tag.
  bool to_bool() const {
    expect(Tag::kBool);
    return payload_.i != 0;
  }
  int64_t to_int() const {
    expect(Tag::kInt);
    return payload_.i;
  }
  double to_float() const {
    expect(Tag::kFloat);
    return payload_.d;
  }
  // A complex number; other numbers are converted.
  std::complex<double> to_complex() const { return to_scalar().to_complex(); }
  Scalar to_scalar() const;  // int, float, bool, complex, or a 0-d tensor's element
  Device to_device() const;  // a device, or its name as a string
  DType to_dtype() const { return dtype_from_number(to_int()); }
  // A Tensor is one word, so the handle itself is stored.
  const Tensor& to_tensor() const {
    expect(Tag::kTensor);
    return payload_.tensor;
  }
  const std::string& to_string() const {
    expect(Tag::kString);
    return static_cast<StringObject*>(payload_.p)->text;
  }
  const List& to_list() const {
    expect(Tag::kList);
    return payload_.list;
  }
  const Dict& to_dict() const {
    expect(Tag::kDict);
    return payload_.dict;
  }
  const Tuple& to_tuple() const {
    expect(Tag::kTuple);
    return payload_.tuple;
  }
  const ObjectPtr& to_object() const {
    expect(Tag::kObject);
    return payload_.object;
  }
  const IntrusivePtr<EnumObject>& to_enum() const {
    expect(Tag::kEnum);
    return payload_.enumeration;
  }
  const IntrusivePtr<FunctionObject>& to_function() const {
    expect(Tag::kFunction);
    return payload_.function;
  }
  const IntrusivePtr<FutureObject>& to_future() const {
    expect(Tag::kFuture);
    return payload_.future;
  }
  const IntrusivePtr<OpaqueObject>& to_opaque() const {
    expect(Tag::kOpaque);
    return payload_.opaque;
  }

  // The object that a reference-counted value points to.
  const void* identity() const { return is_counted() ? payload_.p : nullptr; }
  // Python's `is`: identity of tensors, lists, dicts and objects; equality of other values.
  bool is_same(const Value& other) const;
  // Python's ==, except for tensors, which throw; numbers compare across types.
  bool equals(const Value& other) const;

 private:
  Value(Tag tag, RefCounted* owned) : tag_(owned ? tag : Tag::kNone) { payload_.p = owned; }
  bool is_counted() const { return tag_ >= Tag::kTensor; }
  void expect(Tag tag) const {
    if (tag_ != tag) [[unlikely]]
      fail_tag(tag);
  }
  [[noreturn]] void fail_tag(Tag expected) const;

  // What is counted is a RefCounted whatever its handle: the handles are members only so that a reference to one may be
  // given out without breaking the aliasing rules. Copies are of the bits; the Value does the counting.
  union Payload {
    Payload() : i(0) {}
    Payload(const Payload& other) : i(other.i) {}
    Payload& operator=(const Payload& other) {
      i = other.i;
      return *this;
    }
    ~Payload() {}
    int64_t i;
    double d;
    RefCounted* p;
    Tensor tensor;
    List list;
    Dict dict;
    Tuple tuple;
    ObjectPtr object;
    IntrusivePtr<EnumObject> enumeration;
    IntrusivePtr<FunctionObject> function;
    IntrusivePtr<FutureObject> future;
    IntrusivePtr<OpaqueObject> opaque;
  } payload_;
  Tag tag_ = Tag::kNone;
};

// Frees the items of a container. Nested containers of any depth need little stack.
void drop_items(std::vector<Value>& items) noexcept;
void drop_items(std::vector<std::pair<Value, Value>>& items) noexcept;

struct ListObject final : RefCounted {
  ListObject(TypePtr element, std::vector<Value> items) : element(std::move(element)), items(std::move(items)) {}
  ~ListObject() override { drop_items(items); }
  TypePtr element;
  std::vector<Value> items;
};

// Keeps insertion order, as Python does. Keys: str, int, float, bool; tensors by identity.
struct DictObject final : RefCounted {
  DictObject(TypePtr key, TypePtr value) : key(std::move(key)), value(std::move(value)) {}
  ~DictObject() override { drop_items(items_); }
  TypePtr key, value;
  // Index into items() or -1.
  std::ptrdiff_t find(const Value& key) const;
  void set(Value key, Value value);
  bool erase(const Value& key);
  void clear();
  const std::vector<std::pair<Value, Value>>& items() const { return items_; }
  std::vector<std::pair<Value, Value>>& mutable_items() { return items_; }  // values only; not the keys

 private:
  size_t hash(const Value& key) const;
  void rebuild();
  std::vector<std::pair<Value, Value>> items_;
  std::vector<int32_t> slots_;  // open addressing, -1 free; empty for small dicts
};

struct TupleObject final : RefCounted {
  // `type` is set for a NamedTuple, null otherwise.
  explicit TupleObject(std::vector<Value> items, TypePtr type = nullptr)
      : items(std::move(items)), type(std::move(type)) {}
  ~TupleObject() override { drop_items(items); }
  std::vector<Value> items;
  TypePtr type;
};

// Instance of a script class or module: one slot per attribute of its class.
struct Object final : RefCounted {
  explicit Object(std::shared_ptr<const ClassType> type)
      : type(std::move(type)), slots(this->type->attributes().size()) {}
  ~Object() override { drop_items(slots); }
  std::shared_ptr<const ClassType> type;
  std::vector<Value> slots;
  // Throws Error{kNotFound} naming class and attribute.
  Value& attribute(std::string_view name);
};

struct EnumObject final : RefCounted {
  EnumObject(TypePtr type, std::string name, Value value)
      : type(std::move(type)), name(std::move(name)), value(std::move(value)) {}
  TypePtr type;      // kEnum
  std::string name;  // of the member: "RED"
  Value value;
};

// A compiled function as a value, with the values its closure captured.
struct FunctionObject final : RefCounted {
  ~FunctionObject() override { drop_items(captured); }
  const void* function = nullptr;  // jit::Function
  std::string name;
  std::vector<Value> captured;
};

// The result of fork; already complete, because forks run at once on the calling thread.
class FutureObject final : public RefCounted {
 public:
  explicit FutureObject(Value value) { value_.push_back(std::move(value)); }
  ~FutureObject() override { drop_items(value_); }
  const Value& value() const { return value_.front(); }

 private:
  std::vector<Value> value_;  // exactly one
};

List make_list(TypePtr element, std::vector<Value> items = {});
Value make_int_list(std::span<const int64_t> values);
Value make_tensor_list(const std::vector<Tensor>& tensors);
Value make_tuple(std::vector<Value> items);

// The first tensor of a layout other than strided among the values, lists flattened; null if there is none.
const TensorImpl* find_unstrided(std::span<const Value> values);

// As in Python: "(1+2j)", "2j".
std::string to_string(std::complex<double> value);

// The type of a value by itself (for Any, pickling and messages).
TypePtr type_of(const Value& value);
// Python's isinstance; lists and dicts compare their declared element types.
bool is_instance(const Value& value, const Type& type);

}  // namespace tensord::ops
