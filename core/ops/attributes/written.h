#pragma once

#include <optional>
#include <span>

#include "core/ops/op.h"

namespace tensord::ops {

// An operator's attribute: the requirements of its out= and in-place variants on the tensor that they write.
struct WritesInto {
  // kAnyDType: any dtype that the result's can be cast to. kSameKind: of those, complex ones only for complex results.
  enum class DTypes : uint8_t { kAnyDType, kSameKind, kSameDType };
  // The memory that the target may share with an operand: part of it if the result is complete before it is written.
  enum class Sharing : uint8_t { kSharesPart, kSharesWhole, kSharesNothing };
  using enum DTypes;
  using enum Sharing;
  DTypes dtypes = kAnyDType;
  std::optional<Sharing> sharing = std::nullopt;  // not set: the whole if the operator is pointwise, else part
};

// Called before a pointer to the tensor's elements is taken; copies lent bytes.
void check_writable(const Tensor& tensor);
void check_no_internal_overlap(const Tensor& tensor);
// Checks the target of a variant of `base` with arguments `inputs`, before it takes the result's size.
void check_takes(const Op& base, DType result, const Tensor& target, std::span<const Value> inputs);
void check_apart(const Op& base, const Tensor& target, std::span<const Value> inputs);
// Whether PyTorch checks the old memory of a target that is resized, which it does for few operators.
bool looks_before_resizing(const Op& base);

}  // namespace tensord::ops
