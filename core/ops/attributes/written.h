#pragma once

#include <optional>
#include <span>

#include "core/ops/op.h"

namespace tensord::ops {

// An operator's attribute: what its out= and in-place forms ask of the tensor that they write.
struct WritesInto {
  // kAnyDType: each that the result's can be cast to. kSameKind: of those, complex ones for complex results alone.
  enum class DTypes : uint8_t { kAnyDType, kSameKind, kSameDType };
  // Which memory it may have in common with an operand: part of it where the result is done before it is written.
  enum class Sharing : uint8_t { kSharesPart, kSharesWhole, kSharesNothing };
  using enum DTypes;
  using enum Sharing;
  DTypes dtypes = kAnyDType;
  std::optional<Sharing> sharing = std::nullopt;  // not said: the whole where the operator is pointwise, else part
};

// Before a pointer to the tensor's elements is taken: bytes that were lent are copied now.
void check_writable(const Tensor& tensor);
void check_no_internal_overlap(const Tensor& tensor);
// Of the target of a form of `base`, which has the arguments `inputs`. Before it takes the result's size, where it
// does.
void check_takes(const Op& base, DType result, const Tensor& target, std::span<const Value> inputs);
void check_apart(const Op& base, const Tensor& target, std::span<const Value> inputs);
// Of a target of another size, which takes new memory: PyTorch looks at the old one for these operators alone.
bool looks_before_resizing(const Op& base);

}  // namespace tensord::ops
