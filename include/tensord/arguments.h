#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tensord/methods.h"
//
#include "core/ops/value.h"
#include "core/tensor/tensor.h"

// What operators take. These are types of parameters: they point to what they were made of, live as long as a call
// does, and are made from what people have at hand. They are strict where C++ is not: a number is no bool, 1.5 is no
// int, a text is no bool. Wrong types are errors of the compiler.
namespace tensord {

// A number of any kind: as ops::Scalar, but no text, whose pointer C++ would take for a bool.
class Scalar : public ops::Scalar {
 public:
  using ops::Scalar::Scalar;
  Scalar(const ops::Scalar& value) : ops::Scalar(value) {}
  template <class T>
  Scalar(const T*) = delete;
};

template <class T>
concept WholeNumber = std::integral<T> && !std::same_as<T, bool>;
template <class T>
concept RealNumber = WholeNumber<T> || std::floating_point<T>;

// "int": any integer, no bool.
class Int {
 public:
  template <WholeNumber T>
  constexpr Int(T value) : value_(static_cast<int64_t>(value)) {}
  constexpr operator int64_t() const { return value_; }

 private:
  int64_t value_;
};

// "float": any number, no bool.
class Float {
 public:
  template <RealNumber T>
  constexpr Float(T value) : value_(static_cast<double>(value)) {}
  constexpr operator double() const { return value_; }

 private:
  double value_;
};

// "bool": a bool alone.
class Bool {
 public:
  template <std::same_as<bool> T>
  constexpr Bool(T value) : value_(value) {}
  constexpr operator bool() const { return value_; }

 private:
  bool value_;
};

// PyTorch's memory formats.
enum class MemoryFormat : int64_t { kContiguous = 0, kPreserve = 1, kChannelsLast = 2, kChannelsLast3d = 3 };

// A list that is somebody else's: {1, 2}, a std::vector, an array, a span, Dims. `takes_one`: one item stands for a
// list of it as long as the operator wants ("int[2]"). `is_optional`: std::nullopt stands for None.
template <class T, bool takes_one = false, bool is_optional = false>
class ListArgument {
 public:
  constexpr ListArgument() = default;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"  // both end with the call
#endif
  constexpr ListArgument(std::initializer_list<T> items) : data_(items.begin()), size_(items.size()) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
  ListArgument(const std::vector<T>& items) requires(!std::same_as<T, bool>)
      : data_(items.data()), size_(items.size()) {}
  template <size_t n>
  constexpr ListArgument(const std::array<T, n>& items) : data_(items.data()), size_(n) {}
  constexpr ListArgument(std::span<const T> items) : data_(items.data()), size_(items.size()) {}
  ListArgument(const Dims& dims) requires std::same_as<T, int64_t> : data_(dims.data()), size_(dims.size()) {}
  template <WholeNumber N>
  constexpr ListArgument(N value) requires(takes_one&& std::same_as<T, int64_t>)
      : one_(static_cast<int64_t>(value)), is_one_(true) {}
  constexpr ListArgument(std::nullopt_t) requires is_optional : is_none_(true) {}

  constexpr bool is_none() const { return is_none_; }
  constexpr bool is_one() const { return is_one_; }
  // REQUIRES: is_one().
  constexpr int64_t one() const { return one_; }
  // REQUIRES: neither is_one() nor is_none().
  constexpr std::span<const T> items() const { return {data_, size_}; }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
  int64_t one_ = 0;
  bool is_one_ = false, is_none_ = false;
};

using IntList = ListArgument<int64_t>;          // int[]
using IntOrList = ListArgument<int64_t, true>;  // int[2]
using OptionalIntList = ListArgument<int64_t, false, true>;
using OptionalIntOrList = ListArgument<int64_t, true, true>;
using FloatList = ListArgument<double>;
using OptionalFloatList = ListArgument<double, false, true>;
using BoolList = ListArgument<bool>;
using ScalarList = ListArgument<Scalar>;
using TensorList = ListArgument<Tensor>;

}  // namespace tensord
