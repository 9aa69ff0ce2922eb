#pragma once

#include <atomic>
#include <span>
#include <tuple>
#include <vector>

#include "tensord/arguments.h"
//
#include "core/ops/registry.h"
#include "core/ops/sparse.h"
#include "core/ops/unbox.h"

// The generated functions of include/tensord/ops.h are built from this: each has one static Slot and an array of
// Arguments.
namespace tensord::api {

// An argument of an operator call. It points to the caller's value and owns nothing.
class Argument {
 public:
  Argument(std::nullptr_t) {}
  Argument(const Tensor& tensor) : Argument(Kind::kTensor, &tensor) {}
  Argument(const Scalar& scalar) : Argument(Kind::kScalar, &scalar) {}
  Argument(Int value) : kind_(Kind::kInt) { payload_.i = value; }
  Argument(Float value) : kind_(Kind::kFloat) { payload_.d = value; }
  Argument(Bool value) : kind_(Kind::kBool) { payload_.i = value; }
  Argument(DType dtype) : kind_(Kind::kInt) { payload_.i = static_cast<int64_t>(dtype); }
  Argument(MemoryFormat format) : kind_(Kind::kInt) { payload_.i = static_cast<int64_t>(format); }
  Argument(const Device& device) : Argument(Kind::kDevice, &device) {}
  Argument(const std::string_view& text) : Argument(Kind::kText, text.data(), text.size()) {}
  template <class T>
  Argument(const std::optional<T>& value) {
    if (value) *this = Argument(*value);
  }
  template <class T, bool takes_one, bool is_optional>
  Argument(const ListArgument<T, takes_one, is_optional>& list) {
    if (list.is_one()) {
      *this = Argument(Int(list.one()));
    } else if (!list.is_none()) {
      *this = Argument(kind_of(list.items().data()), list.items().data(), list.items().size());
    }
  }

  ops::Value value() const;

 private:
  enum class Kind : uint8_t {
    kNone,
    kTensor,
    kScalar,
    kInt,
    kFloat,
    kBool,
    kDevice,
    kText,
    kInts,
    kFloats,
    kBools,
    kScalars,
    kTensors
  };
  static Kind kind_of(const int64_t*) { return Kind::kInts; }
  static Kind kind_of(const double*) { return Kind::kFloats; }
  static Kind kind_of(const bool*) { return Kind::kBools; }
  static Kind kind_of(const Scalar*) { return Kind::kScalars; }
  static Kind kind_of(const Tensor*) { return Kind::kTensors; }
  Argument(Kind kind, const void* data, size_t size = 1) : kind_(kind), size_(size) { payload_.p = data; }
  template <class T>
  std::span<const T> items() const {
    return {static_cast<const T*>(payload_.p), size_};
  }

  Kind kind_ = Kind::kNone;
  size_t size_ = 0;
  union {
    int64_t i = 0;
    double d;
    const void* p;
  } payload_;
};

// The results of a call, converted to the return type of the function.
class Results {
 public:
  explicit Results(std::vector<ops::Value> values) : values_(std::move(values)) {}
  template <class R>
  operator R() && {
    return get<R>(values_.at(0));
  }
  template <class... R>
  operator std::tuple<R...>() && {
    return take<std::tuple<R...>>(std::index_sequence_for<R...>());
  }

 private:
  template <class R>
  using Boxed = std::conditional_t<std::is_same_v<R, Scalar>, ops::Scalar, R>;
  // A sparse tensor arrives as the Tensor that represents it. A result that the operator leaves out is an undefined
  // tensor.
  template <class R>
  static R get(const ops::Value& value) {
    if constexpr (std::is_same_v<R, Tensor>) {
      return value.is_none() ? Tensor() : value.to_tensor();
    } else {
      return ops::Unbox<Boxed<R>>::get(value);
    }
  }
  template <class Tuple, size_t... I>
  Tuple take(std::index_sequence<I...>) {
    return {get<std::tuple_element_t<I, Tuple>>(values_.at(I))...};
  }
  std::vector<ops::Value> values_;
};

// One operator. The first call looks it up by name.
class Slot {
 public:
  explicit constexpr Slot(const char* name) : name_(name) {}
  // Throws Error as ops::run does, and for an undefined tensor where the schema requires a tensor.
  Results call(std::span<const Argument> arguments);

 private:
  const char* name_;
  std::atomic<const ops::Op*> op_ = nullptr;
};

}  // namespace tensord::api

// The body of a generated function. `return` converts the results to the function's return type.
#define TENSORD_CALL(NAME, ...)                               \
  static constinit ::tensord::api::Slot slot(NAME);           \
  const ::tensord::api::Argument arguments[] = {__VA_ARGS__}; \
  return slot.call(arguments)
