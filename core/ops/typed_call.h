#pragma once

#include <atomic>
#include <span>
#include <tuple>
#include <vector>

#include "core/ops/arguments.h"
#include "core/ops/registry.h"
#include "core/ops/unbox.h"

// What scripts/operators.py makes functions of: each has one static Slot and an array of Arguments.
namespace tensord::ops::typed {

// An argument of an operator call. It points to the caller's value and owns nothing.
class Argument {
 public:
  Argument(std::nullptr_t) {}
  Argument(const Tensor& tensor) : Argument(Kind::kTensor, &tensor) {}
  Argument(const Scalar& scalar) : Argument(Kind::kScalar, &scalar) {}
  Argument(const Value& value) : Argument(Kind::kValue, &value) {}
  Argument(Int value) : kind_(Kind::kInt) { payload_.i = value; }
  Argument(Float value) : kind_(Kind::kFloat) { payload_.d = value; }
  Argument(Bool value) : kind_(Kind::kBool) { payload_.i = value; }
  Argument(DType dtype) : kind_(Kind::kInt) { payload_.i = static_cast<int64_t>(dtype); }
  Argument(MemoryFormat format) : kind_(Kind::kInt) { payload_.i = static_cast<int64_t>(format); }
  Argument(Layout layout) : kind_(Kind::kInt) { payload_.i = static_cast<int64_t>(layout); }
  Argument(const Device& device) : Argument(Kind::kDevice, &device) {}
  Argument(const std::string_view& text) : Argument(Kind::kText, text.data(), text.size()) {}
  template <class T>
  Argument(const std::optional<T>& value) {
    if (value) *this = Argument(*value);
  }
  Argument(const tensord::OptionalTensorList& list) {
    *this = list.is_optional() ? Argument(list.optional()) : Argument(list.tensors());
  }
  template <class T, bool takes_one, bool is_optional>
  Argument(const ListArgument<T, takes_one, is_optional>& list) {
    if (list.is_one()) {
      *this = Argument(Int(list.one()));
      is_repeated_ = true;
    } else if (!list.is_none()) {
      *this = Argument(kind_of(list.items().data()), list.items().data(), list.items().size());
    }
  }

  Value value() const;
  // A single int that stands for a list.
  bool is_repeated() const { return is_repeated_; }

 private:
  enum class Kind : uint8_t {
    kNone,
    kTensor,
    kScalar,
    kValue,
    kInt,
    kFloat,
    kBool,
    kDevice,
    kText,
    kInts,
    kFloats,
    kBools,
    kScalars,
    kTensors,
    kOptionalTensors
  };
  static Kind kind_of(const int64_t*) { return Kind::kInts; }
  static Kind kind_of(const double*) { return Kind::kFloats; }
  static Kind kind_of(const bool*) { return Kind::kBools; }
  static Kind kind_of(const Scalar*) { return Kind::kScalars; }
  static Kind kind_of(const Tensor*) { return Kind::kTensors; }
  static Kind kind_of(const std::optional<Tensor>*) { return Kind::kOptionalTensors; }
  Argument(Kind kind, const void* data, size_t size = 1) : kind_(kind), size_(size) { payload_.p = data; }
  template <class T>
  std::span<const T> items() const {
    return {static_cast<const T*>(payload_.p), size_};
  }

  Kind kind_ = Kind::kNone;
  bool is_repeated_ = false;
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
  explicit Results(std::vector<Value> values) : values_(std::move(values)) {}
  template <class R>
  operator R() && {
    return get<R>(values_.at(0));
  }
  template <class... R>
  operator std::tuple<R...>() && {
    return take<std::tuple<R...>>(std::index_sequence_for<R...>());
  }

 private:
  // A result that the operator leaves out is an undefined tensor.
  template <class R>
  static R get(const Value& value) {
    if constexpr (std::is_same_v<R, Tensor>) {
      return value.is_none() ? Tensor() : value.to_tensor();
    } else if constexpr (std::is_same_v<R, std::vector<Tensor>>) {
      std::vector<Tensor> tensors;
      for (const Value& item : value.to_list()->items) tensors.push_back(get<Tensor>(item));
      return tensors;
    } else {
      return Unbox<R>::get(value);
    }
  }
  template <class Tuple, size_t... I>
  Tuple take(std::index_sequence<I...>) {
    return {get<std::tuple_element_t<I, Tuple>>(values_.at(I))...};
  }
  std::vector<Value> values_;
};

// One operator. The first call looks it up by name.
class Slot {
 public:
  explicit constexpr Slot(const char* name) : name_(name) {}
  // Throws Error as ops::run does, and for an undefined tensor where the schema requires a tensor.
  Results call(std::span<const Argument> arguments);

 private:
  const char* name_;
  std::atomic<const Op*> op_ = nullptr;
};

}  // namespace tensord::ops::typed

// The body of a generated function. `return` converts the results to the function's return type.
#define TENSORD_CALL(NAME, ...)                      \
  static constinit typed::Slot slot(NAME);           \
  const typed::Argument arguments[] = {__VA_ARGS__}; \
  return slot.call(arguments)
// Of one without results.
#define TENSORD_RUN(NAME, ...)                       \
  static constinit typed::Slot slot(NAME);           \
  const typed::Argument arguments[] = {__VA_ARGS__}; \
  slot.call(arguments)
