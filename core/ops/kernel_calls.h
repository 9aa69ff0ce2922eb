#pragma once

#include <span>
#include <vector>

#include "core/ops/dispatch.h"
#include "core/ops/operator_scope.h"

// Helpers of all kernels in the table: outputs, written arguments, errors.
namespace tensord::ops {

Tensor allocate(const TensorMeta& meta, Device device);
// For an operator with infer: calls the kernel, and records the tensors' use by the stream.
void fill_outputs(const KernelFunction& kernel, const KernelContext& context, std::span<const Value> arguments,
                  std::span<Tensor> outputs);

// Visits the tensors that the schema marks as written. Tensors of other layouts are written part by part, by operators
// of their own.
template <class Fn>
void for_each_written(const Op& op, std::span<const Value> arguments, Fn&& fn) {
  if (op.is_pure || (op.writes_when >= 0 && !arguments[static_cast<size_t>(op.writes_when)].to_bool())) return;
  for (size_t i = 0; i < op.schema.arguments.size() && i < arguments.size(); ++i) {
    if (op.schema.arguments[i].alias.is_write && arguments[i].is_strided() && !arguments[i].to_tensor().is_meta()) {
      fn(arguments[i].to_tensor());
    }
  }
}

// Rethrows an error of a call with the operator's name in front. Tensors that a cancelled call may have written count
// as written.
[[noreturn]] void fail_call(const Op& op, std::span<const Value> arguments, const Error& error);

// Wraps `body` as a kernel of the table.
template <KernelFunction::Run body>
void with_name(const KernelFunction& kernel, const Op& op, const CallKeys& keys, std::span<const Value> arguments,
               std::vector<Value>& returns) {
  try {
    if (keys.device.is_host()) return body(kernel, op, keys, arguments, returns);
    const OperatorScope scope(op);
    body(kernel, op, keys, arguments, returns);
  } catch (const Error& error) {
    fail_call(op, arguments, error);
  }
}

}  // namespace tensord::ops
