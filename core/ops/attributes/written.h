#pragma once

#include <span>

#include "core/ops/op.h"

namespace tensord::ops {

// An operator's attribute: what its out= and in-place forms ask of the tensor that they write. Without it: a dtype that
// the result's can be cast to, and of pointwise operators memory that is an operand's wholly or not at all.
struct WritesInto {
  enum class DTypes : uint8_t { kCast, kCastOfKind, kSame };  // kCastOfKind: complex for complex results alone
  // Which memory it may share with an operand: kPart is for those whose result is done before it is written.
  enum class Sharing : uint8_t { kPart, kWhole, kNone };
  DTypes dtypes = DTypes::kCast;
  Sharing sharing = Sharing::kPart;
};

void check_writable(const Tensor& tensor);
void check_no_internal_overlap(const Tensor& tensor);
// Of the target of a form of `base`, which has the arguments `inputs`. Before it takes the result's size, where it
// does.
void check_takes(const Op& base, DType result, const Tensor& target, std::span<const Value> inputs);
void check_apart(const Op& base, const Tensor& target, std::span<const Value> inputs);
// Of a target of another size, which takes new memory: PyTorch looks at the old one for these operators alone.
bool looks_before_resizing(const Op& base);

}  // namespace tensord::ops
