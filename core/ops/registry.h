#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/op.h"

namespace tensord::ops {

// All operators. Filled by OP and IMPL before main, then frozen by the first look-up:
// kernels are joined to their ops and every signature is checked. A mistake in a
// registration is a clear Error from the first look-up. Thread-safe once frozen.

// "aten::add.Tensor", or null.
const Op* find_op(std::string_view full_name);
// Throws Error{kUnimplemented} naming the operator.
const Op& get_op(std::string_view full_name);
// All overloads of "aten::add" in registration order; empty if there are none.
std::span<const Op* const> find_overloads(std::string_view name);
// Derives a device's kernels from another device's: calls `fill` or `function` with each kernel of `like`, for
// operators without a kernel for `device`. For a device that runs the other's loops in its own memory and order. Called
// before the first look-up, as IMPL.
struct DerivedKernels {
  DeviceKind device, like;
  std::function<FillFn(const Op& op, const FillFn& fill)> fill;
  std::function<ReturnFn(const Op& op, const ReturnFn& function)> function;
};
void derive_kernels(DerivedKernels derived);

// Every operator, by name.
std::vector<const Op*> all_ops();

}  // namespace tensord::ops
