#pragma once

#include <utility>

#include "core/ops/value.h"

namespace tensord::kernels {

// A nested tensor: samples of different lengths, stored as one tensor of (samples, longest, width) whose rows beyond a
// sample's length are zero. It is a value of its own and not a Tensor, so that operators without support for it refuse
// it. Only nn.TransformerEncoder makes them, and only its operators take them. Immutable.
struct NestedTensor final : ops::OpaqueObject {
  // `rows` has any values beyond the lengths, which become zero; `padding` is true there: (samples, longest).
  NestedTensor(const Tensor& rows, Tensor padding);
  std::string class_name() const override { return "NestedTensor"; }
  const Tensor rows, padding;
};

// Null for other values.
const NestedTensor* as_nested(const ops::Value& value);
// The rows of a nested tensor, or the tensor itself: for operators that need only what both have in common.
const Tensor& rows_of(const ops::Value& value);
// A nested tensor with the same lengths and other rows.
ops::Value with_rows(const NestedTensor& nested, const Tensor& rows);

}  // namespace tensord::kernels
