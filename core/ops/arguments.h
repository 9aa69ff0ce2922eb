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

#include "core/ops/value.h"
#include "core/tensor/tensor.h"

// The parameter types of operators. They refer to the values they are made from, are valid for the length of the call,
// and convert implicitly from common types. They are stricter than C++: a number is not a bool, 1.5 is not an int, a
// text is not a bool. A wrong type is a compile error.
namespace tensord {

template <class T>
concept WholeNumber = std::integral<T> && !std::same_as<T, bool>;
template <class T>
concept RealNumber = WholeNumber<T> || std::floating_point<T>;

// "int": any integer type, but not bool.
class Int {
 public:
  template <WholeNumber T>
  constexpr Int(T value) : value_(static_cast<int64_t>(value)) {}
  constexpr operator int64_t() const { return value_; }

 private:
  int64_t value_;
};

// "float": any number type, but not bool.
class Float {
 public:
  template <RealNumber T>
  constexpr Float(T value) : value_(static_cast<double>(value)) {}
  constexpr operator double() const { return value_; }

 private:
  double value_;
};

// "bool": only bool.
class Bool {
 public:
  template <std::same_as<bool> T>
  constexpr Bool(T value) : value_(value) {}
  constexpr operator bool() const { return value_; }

 private:
  bool value_;
};

// PyTorch's numbers of layouts and memory formats.
enum class Layout : int64_t {
  kStrided = 0,
  kSparse = 1,
  kSparseCsr = 2,
  kSparseCsc = 4,
  kSparseBsr = 5,
  kSparseBsc = 6
};
enum class MemoryFormat : int64_t { kContiguous = 0, kPreserve = 1, kChannelsLast = 2, kChannelsLast3d = 3 };

// A list that the caller owns: {1, 2}, a std::vector, an array, a span, Dims. `takes_one`: a single item stands for a
// list with the length that the operator needs ("int[2]"). `is_optional`: std::nullopt stands for None.
template <class T, bool takes_one = false, bool is_optional = false>
class ListArgument {
 public:
  constexpr ListArgument() = default;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"  // the list and the argument both end with the call
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
  // REQUIRES of the optional: it lives as long as the call, as all lists.
  ListArgument(const std::optional<Dims>& dims) requires(is_optional&& std::same_as<T, int64_t>) : is_none_(!dims) {
    if (dims) *this = ListArgument(*dims);
  }
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
using ScalarList = ListArgument<ops::Scalar>;
using TensorList = ListArgument<Tensor>;

// Tensor?[]: undefined tensors are None too.
class OptionalTensorList {
 public:
  OptionalTensorList(TensorList tensors) : tensors_(tensors) {}
  OptionalTensorList(const std::vector<Tensor>& tensors) : tensors_(tensors) {}
  OptionalTensorList(const std::vector<std::optional<Tensor>>& tensors) : optional_(tensors), is_optional_(true) {}
  OptionalTensorList(std::initializer_list<std::optional<Tensor>> tensors) : optional_(tensors), is_optional_(true) {}

  bool is_optional() const { return is_optional_; }
  // REQUIRES: is_optional() says which one.
  const TensorList& tensors() const { return tensors_; }
  const ListArgument<std::optional<Tensor>>& optional() const { return optional_; }

 private:
  TensorList tensors_;
  ListArgument<std::optional<Tensor>> optional_;
  bool is_optional_ = false;
};

}  // namespace tensord
