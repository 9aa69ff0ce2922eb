#pragma once

#include <optional>
#include <vector>

#include "tensord/arguments.h"

// x[…] as in Python: index(x, {0, Slice(1, 3), None, Ellipsis, mask}), and index_put_ for x[…] = value.
namespace tensord {

// start:stop:step; what is left out is the whole. Negative positions count from the end, step is at least 1.
struct Slice {
  constexpr Slice() = default;
  constexpr Slice(std::optional<Int> start, std::optional<Int> stop = std::nullopt, Int step = 1)
      : start(start), stop(stop), step(step) {}
  std::optional<Int> start, stop;
  Int step = 1;
};
struct NoneIndex {};
struct EllipsisIndex {};
inline constexpr NoneIndex None;          // a new dimension of size 1
inline constexpr EllipsisIndex Ellipsis;  // ":" for all dimensions that are not named

// One place between the brackets.
class TensorIndex {
 public:
  template <WholeNumber N>
  TensorIndex(N number) : kind_(Kind::kInt), number_(static_cast<int64_t>(number)) {}
  template <std::same_as<bool> B>
  TensorIndex(B value) : kind_(Kind::kBool), number_(value) {}
  TensorIndex(Slice slice) : kind_(Kind::kSlice), slice_(slice) {}
  TensorIndex(NoneIndex) : kind_(Kind::kNone) {}
  TensorIndex(EllipsisIndex) : kind_(Kind::kEllipsis) {}
  // Positions (whole numbers), or a mask (bool).
  TensorIndex(Tensor tensor) : kind_(Kind::kTensor), tensor_(std::move(tensor)) {}

 private:
  friend class Indexer;
  enum class Kind : uint8_t { kInt, kBool, kSlice, kNone, kEllipsis, kTensor } kind_;
  int64_t number_ = 0;
  Slice slice_;
  Tensor tensor_;
};

// A view where there are numbers, slices, None and Ellipsis alone, else a new tensor. Throws Error{kOutOfRange} for a
// position or a mask that does not fit.
Tensor index(const Tensor& self, const std::vector<TensorIndex>& indices);
// Writes `values`, broadcast and converted, there and gives `self` back. With `accumulate` they are added, also where a
// position comes more than once.
Tensor index_put_(const Tensor& self, const std::vector<TensorIndex>& indices, const Tensor& values,
                  Bool accumulate = false);
Tensor index_put_(const Tensor& self, const std::vector<TensorIndex>& indices, const Scalar& value,
                  Bool accumulate = false);

}  // namespace tensord
