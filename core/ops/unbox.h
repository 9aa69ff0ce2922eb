#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "core/ops/value.h"

namespace tensord::ops {

using IntList = Dims;                                           // int[]
using TensorList = std::vector<Tensor>;                         // Tensor[]
using OptionalTensorList = std::vector<std::optional<Tensor>>;  // Tensor?[]

// How a C++ parameter type is read from a Value, and the schema type that it corresponds to, which is compared with the
// schema at registration.
template <class T>
struct Unbox;

#define TENSORD_UNBOX(TYPE, SCHEMA, EXPRESSION)            \
  template <>                                              \
  struct Unbox<TYPE> {                                     \
    static std::string schema() { return SCHEMA; }         \
    static TYPE get(const Value& v) { return EXPRESSION; } \
  };
TENSORD_UNBOX(int64_t, "int", v.to_int())
TENSORD_UNBOX(double, "float", v.is_int() ? static_cast<double>(v.to_int()) : v.to_float())
TENSORD_UNBOX(bool, "bool", v.to_bool())
TENSORD_UNBOX(Scalar, "number", v.to_scalar())
TENSORD_UNBOX(DType, "ScalarType", v.to_dtype())
TENSORD_UNBOX(Device, "Device", v.to_device())
TENSORD_UNBOX(List, "List", v.to_list())
TENSORD_UNBOX(Dict, "Dict", v.to_dict())
TENSORD_UNBOX(Tuple, "Tuple", v.to_tuple())
#undef TENSORD_UNBOX

template <>
struct Unbox<const Tensor&> {
  static std::string schema() { return "Tensor"; }
  static const Tensor& get(const Value& v) { return v.to_tensor(); }
};
template <>
struct Unbox<Tensor> : Unbox<const Tensor&> {};
template <>
struct Unbox<const std::string&> {
  static std::string schema() { return "str"; }
  static const std::string& get(const Value& v) { return v.to_string(); }
};
template <>
struct Unbox<std::string_view> : Unbox<const std::string&> {};
template <>
struct Unbox<std::string> : Unbox<const std::string&> {};
// Any value, of any schema type.
template <>
struct Unbox<const Value&> {
  static std::string schema() { return "*"; }
  static const Value& get(const Value& v) { return v; }
};
template <>
struct Unbox<Value> : Unbox<const Value&> {};
// Packed weights and the like: IntrusivePtr<MyObject> where MyObject is an OpaqueObject.
template <class T>
requires std::is_base_of_v<OpaqueObject, T>
struct Unbox<IntrusivePtr<T>> {
  static std::string schema() { return "*"; }
  static IntrusivePtr<T> get(const Value& v) {
    auto* object = dynamic_cast<T*>(v.to_opaque().get());
    check(object != nullptr, "got a value of class ", v.to_opaque()->class_name(), " where another was expected");
    return IntrusivePtr<T>(object);
  }
};
template <>
struct Unbox<IntList> {
  static std::string schema() { return "List[int]"; }
  static IntList get(const Value& v) {
    const auto& items = v.to_list()->items;
    IntList out(items.size(), 0);
    for (size_t i = 0; i < items.size(); ++i) out[i] = items[i].to_int();
    return out;
  }
};
template <class T>
struct Unbox<std::vector<T>> {
  static std::string schema() { return "List[" + Unbox<T>::schema() + "]"; }
  static std::vector<T> get(const Value& v) {
    std::vector<T> out;
    out.reserve(v.to_list()->items.size());
    for (const Value& item : v.to_list()->items) out.push_back(Unbox<T>::get(item));
    return out;
  }
};
template <class T>
struct Unbox<std::optional<T>> {
  static std::string schema() { return "Optional[" + Unbox<T>::schema() + "]"; }
  static std::optional<T> get(const Value& v) {
    if (v.is_none()) return std::nullopt;
    return Unbox<T>::get(v);
  }
};

// A parameter `const IntList&` is read as IntList, `const Tensor&` stays a reference.
template <class T>
using UnboxOf = std::conditional_t<std::is_same_v<T, const Tensor&> || std::is_same_v<T, const std::string&> ||
                                       std::is_same_v<T, const Value&>,
                                   Unbox<T>, Unbox<std::remove_cvref_t<T>>>;

// unbox<Dims>(value): a value as a C++ type. Throws Error where it is another.
template <class T>
T unbox(const Value& value) {
  return UnboxOf<T>::get(value);
}

// Parameter list of a function pointer or a lambda.
template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... A>
struct Signature<R (*)(A...)> {
  using Return = R;
  using Arguments = std::tuple<A...>;
};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> : Signature<R (*)(A...)> {};

// The schema types of a C++ function's parameters: constant data, so that a registration is little code.
using CppTypes = std::span<std::string (*const)()>;
// Those of the elements kFirst + I of a tuple type.
template <class Tuple, size_t kFirst, size_t... I>
CppTypes cpp_types_of(std::index_sequence<I...>) {
  static constexpr std::array<std::string (*)(), sizeof...(I)> kTypes{
      &UnboxOf<std::tuple_element_t<kFirst + I, Tuple>>::schema...};
  return kTypes;
}
// Whether the parameters are those of the schema; used at registration.
bool are_arguments_of(const Schema& schema, CppTypes types);
std::string to_string(CppTypes types);  // "Tensor, int"

}  // namespace tensord::ops
