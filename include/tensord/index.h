#pragma once

#include <optional>
#include <vector>

#include "tensord/arguments.h"

// Python's indexing: index(x, {0, Slice(1, 3), None, Ellipsis, mask}) is x[0, 1:3, None, ..., mask], and index_put_ is
// x[…] = value.
namespace tensord {

// start:stop:step. An omitted bound is the end of the dimension. Negative positions count from the end; step is at
// least 1.
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

// One index between the brackets.
class TensorIndex {
 public:
  template <WholeNumber N>
  TensorIndex(N number) : kind_(Kind::kInt), number_(static_cast<int64_t>(number)) {}
  template <std::same_as<bool> B>
  TensorIndex(B value) : kind_(Kind::kBool), number_(value) {}
  TensorIndex(Slice slice) : kind_(Kind::kSlice), slice_(slice) {}
  TensorIndex(NoneIndex) : kind_(Kind::kNone) {}
  TensorIndex(EllipsisIndex) : kind_(Kind::kEllipsis) {}
  // Positions (an integer tensor) or a mask (a bool tensor).
  TensorIndex(Tensor tensor) : kind_(Kind::kTensor), tensor_(std::move(tensor)) {}

 private:
  friend class Indexer;
  enum class Kind : uint8_t { kInt, kBool, kSlice, kNone, kEllipsis, kTensor } kind_;
  int64_t number_ = 0;
  Slice slice_;
  Tensor tensor_;
};

// Returns a view if all indices are numbers, slices, None and Ellipsis, otherwise a new tensor. Throws
// Error{kOutOfRange} for a position or mask that does not fit.
Tensor index(const Tensor& self, const std::vector<TensorIndex>& indices);
// Writes `values`, broadcast and converted to the dtype, to the indexed elements and returns `self`. With `accumulate`
// it adds them, also for repeated positions.
Tensor index_put_(const Tensor& self, const std::vector<TensorIndex>& indices, const Tensor& values,
                  Bool accumulate = false);
Tensor index_put_(const Tensor& self, const std::vector<TensorIndex>& indices, const Scalar& value,
                  Bool accumulate = false);

}  // namespace tensord
