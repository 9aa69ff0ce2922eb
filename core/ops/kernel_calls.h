#pragma once

#include <span>
#include <vector>

#include "core/ops/dispatch.h"

// What the code of an operator's table has in common: outputs, written arguments, errors.
namespace tensord::ops {

Tensor allocate(const TensorMeta& meta, Device device);
// Of an operator with infer: calls the kernel, and tells the stream what it uses.
void fill_outputs(const KernelFunction& kernel, const KernelContext& context, std::span<const Value> arguments,
                  std::span<Tensor> outputs);

// Tensors that the schema marks as written. Of other layouts the parts are written, by operators of their own.
template <class Fn>
void for_each_written(const Op& op, std::span<const Value> arguments, Fn&& fn) {
  if (op.is_pure || (op.writes_when >= 0 && !arguments[static_cast<size_t>(op.writes_when)].to_bool())) return;
  for (size_t i = 0; i < op.schema.arguments.size() && i < arguments.size(); ++i) {
    if (op.schema.arguments[i].alias.is_write && arguments[i].is_strided() && !arguments[i].to_tensor().is_meta()) {
      fn(arguments[i].to_tensor());
    }
  }
}

// Ends a call that threw: the error starts with the operator's name, and what a cancelled call may have changed counts
// as written.
[[noreturn]] void fail_call(const Op& op, std::span<const Value> arguments, const Error& error);

// `body` as a table's code.
template <KernelFunction::Run body>
void with_name(const KernelFunction& kernel, const Op& op, const CallKeys& keys, std::span<const Value> arguments,
               std::vector<Value>& returns) {
  try {
    body(kernel, op, keys, arguments, returns);
  } catch (const Error& error) {
    fail_call(op, arguments, error);
  }
}

}  // namespace tensord::ops
