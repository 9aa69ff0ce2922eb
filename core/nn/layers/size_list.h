#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include "core/tensor/dims.h"

namespace tensord::nn {

// Sizes that a layer is made with: {3, 5}, or a number, 3, as a list of one.
class SizeList : public Dims {
 public:
  using Dims::Dims;
  SizeList() = default;
  SizeList(const Dims& sizes) : Dims(sizes) {}
  SizeList(Dims&& sizes) noexcept : Dims(std::move(sizes)) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) SizeList(T size) : Dims{static_cast<int64_t>(size)} {}

  // A number for each of `count` dimensions: one number stands for all.
  Dims expanded(size_t count) const { return size() == 1 ? Dims(count, (*this)[0]) : Dims(*this); }
};

// For layers that may be made with one list alone: NAME({3, 5}) could be a copy of NAME(3, 5), too. An
// std::initializer_list would take NAME{3, 5} as well.
#define TENSORD_LIST_ALONE(NAME) \
  template <size_t kSizes>       \
  explicit NAME(const int64_t(&sizes)[kSizes]) : NAME(SizeList(std::span<const int64_t>(sizes))) {}

}  // namespace tensord::nn
