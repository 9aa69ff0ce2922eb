#pragma once

#include <utility>

#include "core/ops/value.h"

namespace tensord::kernels {

// What stands for a nested tensor: samples of different lengths, held as one tensor of (samples, longest, width) whose
// rows beyond a sample's length are zero. As a value of its own, and not a Tensor, so that an operator which does not
// know of it refuses it. Only nn.TransformerEncoder makes them, and only its operators take them. Immutable.
struct NestedTensor final : ops::OpaqueObject {
  // `rows` are the values before those beyond the lengths become zero; `padding` is true there: (samples, longest).
  NestedTensor(const Tensor& rows, Tensor padding);
  std::string class_name() const override { return "NestedTensor"; }
  const Tensor rows, padding;
};

// Null for anything else.
const NestedTensor* as_nested(const ops::Value& value);
// The rows of a nested tensor, or the tensor itself: for operators that ask only for what both have in common.
const Tensor& rows_of(const ops::Value& value);
// The same lengths with other rows.
ops::Value with_rows(const NestedTensor& nested, const Tensor& rows);

}  // namespace tensord::kernels
