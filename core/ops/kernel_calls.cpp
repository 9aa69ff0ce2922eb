#include "core/ops/kernel_calls.h"

#include <algorithm>

#include "core/base/queued_error.h"
#include "core/ops/attributes/host_indices.h"
#include "core/ops/attributes/written.h"
#include "core/ops/named_error.h"
#include "core/ops/run.h"

namespace tensord::ops {
namespace {

using Arguments = std::span<const Value>;

// The stream's work on these tensors outlasts the call.
void record_streams(DeviceStream& stream, const Value& value) {
  if (value.is_tensor() && value.to_tensor().defined() && value.to_tensor().storage()) {
    value.to_tensor().storage()->record_stream(stream);
  } else if (value.is_list() && value.to_list()->element->kind() == TypeKind::kTensor) {
    for (const Value& item : value.to_list()->items) record_streams(stream, item);
  }
}

Tensor meta_tensor(const TensorMeta& meta, Device device) {
  if (meta.strides.empty() || meta.sizes.empty()) return Tensor::meta(meta.sizes, meta.dtype, device);
  return Tensor::meta_strided(meta.sizes, meta.strides, meta.dtype, device);
}

bool has_no_data(const Value& value) {
  if (value.is_tensor()) return value.to_tensor().is_meta();
  if (!value.is_list() || value.to_list()->element->kind() == TypeKind::kInt) return false;
  const auto& items = value.to_list()->items;
  return std::any_of(items.begin(), items.end(), has_no_data);
}

void bump_version(const Tensor& tensor) { tensor.storage()->bump_version(); }

// The kernel fills outputs that are allocated as infer says.
void run_structured(const KernelFunction& kernel, const Op& op, const CallKeys& keys, Arguments arguments,
                    std::vector<Value>& returns) {
  for_each_written(op, arguments, check_writable);
  const std::vector<TensorMeta> metas = op.infer(arguments);
  check_one_device(keys);
  constexpr size_t kMax = 8;
  check_internal(metas.size() <= kMax, "too many outputs");
  Tensor outputs[kMax];
  for (size_t i = 0; i < metas.size(); ++i) outputs[i] = allocate(metas[i], keys.device);
  fill_outputs(kernel, KernelContext{keys.device}, arguments, std::span(outputs, metas.size()));
  for (size_t i = 0; i < metas.size(); ++i) returns.emplace_back(outputs[i]);
  for_each_written(op, arguments, bump_version);
}

// Whether the only tensors off the call's device are indices in host memory, which the operator takes.
bool only_indices_on_host(const Op& op, const CallKeys& keys, Arguments arguments) {
  if (!op.attributes.get<TakesHostIndices>() || keys.device.is_host()) return false;
  const auto is_there = [&](const Value& value, bool may_be_on_host) {
    if (!value.is_tensor() || !value.to_tensor().defined()) return true;
    const Tensor& tensor = value.to_tensor();
    return tensor.device() == keys.device || (tensor.device().is_host() && (may_be_on_host || tensor.ndim() == 0));
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (i != 1 && !is_there(arguments[i], false)) return false;
  }
  return arguments[1].is_list() &&
         std::ranges::all_of(arguments[1].to_list()->items, [&](const Value& index) { return is_there(index, true); });
}

void run_function(const KernelFunction& kernel, const Op& op, const CallKeys& keys, Arguments arguments,
                  std::vector<Value>& returns) {
  for_each_written(op, arguments, check_writable);
  if (keys.is_mixed && op.kind == OpKind::kAllocating && !only_indices_on_host(op, keys, arguments)) {
    check_one_device(keys);
  }
  kernel.function(arguments, returns);
  for_each_written(op, arguments, bump_version);
}

// The operators that it calls on the parts count their own writes.
void run_on_parts(const KernelFunction& kernel, const Op&, const CallKeys&, Arguments arguments,
                  std::vector<Value>& returns) {
  kernel.function(arguments, returns);
}

// Whether infer describes the results of the kernel for these tensors.
bool has_infer_for(const Op& op, const CallKeys& keys) {
  const Functionality layout = (keys.set & kLayoutKeys).highest();
  const KernelFunction* const kernel = op.table[cell_of(layout, keys.device.kind)];
  return op.infer && (layout == Functionality::kDense || (kernel && kernel->fill));
}

void shapes_or_code(const KernelFunction&, const Op& op, const CallKeys& keys, Arguments arguments,
                    std::vector<Value>& returns) {
  const CallKeys below = keys.below(Functionality::kShapeInference);
  const bool is_asked = has_infer_for(op, below) && std::any_of(arguments.begin(), arguments.end(), has_no_data);
  if (!is_asked) return redispatch(op, below, arguments, returns);
  for (const TensorMeta& meta : op.infer(arguments)) returns.emplace_back(meta_tensor(meta, keys.device));
}

}  // namespace

Tensor allocate(const TensorMeta& meta, Device device) {
  if (meta.strides.empty() || meta.sizes.empty()) return Tensor::empty(meta.sizes, meta.dtype, device);
  return Tensor::empty_strided(meta.sizes, meta.strides, meta.dtype, device);
}

void fill_outputs(const KernelFunction& kernel, const KernelContext& context, Arguments arguments,
                  std::span<Tensor> outputs) {
  kernel.fill(context, arguments, outputs);
  if (!context.stream) return;
  for (const Value& argument : arguments) record_streams(*context.stream, argument);
  for (const Tensor& output : outputs) record_streams(*context.stream, output);
}

void fail_call(const Op& op, Arguments arguments, const Error& error) {
  if (error.code() == ErrorCode::kCancelled || error.code() == ErrorCode::kDeadlineExceeded)
    for_each_written(op, arguments, bump_version);
  if (dynamic_cast<const QueuedError*>(&error)) throw QueuedError(error.code(), error.what());
  const std::string name = op.schema.name;
  const std::string_view message = error.what();
  const bool is_named = dynamic_cast<const NamedError*>(&error) != nullptr || message.starts_with(name);
  if (error.code() == ErrorCode::kScriptRaised || error.code() == ErrorCode::kCancelled || is_named) {
    throw Error(error.code(), error.what());
  }
  throw Error(error.code(), concat(name, ": ", message));
}

KernelFunction::Run runner_of(const KernelFunction& kernel, DispatchKeySet layouts) {
  if (kernel.fill) return with_name<run_structured>;
  return layouts.has_any(kCompoundLayouts) ? with_name<run_on_parts> : with_name<run_function>;
}

const KernelFunction kShapesOrCode{.run = with_name<shapes_or_code>};

std::vector<Value> infer(const Op& op, Arguments arguments) {
  if (op.has_dynamic_shape) {
    fail(ErrorCode::kUnimplemented, op.schema.full_name(), ": the output shape depends on data");
  }
  std::vector<Value> returns;
  try {
    const ContextPart<&ExecutionContext::included_keys> asked(execution_context().included_keys |
                                                              Functionality::kShapeInference);
    const CallKeys keys = keys_of(op, arguments);
    const Functionality layout = (keys.set & kLayoutKeys).highest();
    // The results of compound layouts are not determined by shapes alone.
    if (kCompoundLayouts.has(layout))
      fail(ErrorCode::kUnimplemented, "code for tensors of layout ", name_of(layout), " is run, not inferred");
    const KernelFunction* const kernel = op.table[cell_of(layout, keys.device.kind)];
    if (op.base) {
      returns.push_back(op.base->schema.name != op.schema.name ? arguments.front() : arguments.back());
    } else if (has_infer_for(op, keys)) {
      check_one_device(keys);
      for (const TensorMeta& meta : op.infer(arguments)) returns.emplace_back(meta_tensor(meta, keys.device));
    } else if (kernel && !kernel->function) {
      kernel->run(*kernel, op, keys, arguments, returns);
    } else if (kernel) {
      kernel->function(arguments, returns);
    } else {
      fail_no_kernel(op, keys);
    }
  } catch (const Error& error) {
    fail_call(op, arguments, error);
  }
  return returns;
}

}  // namespace tensord::ops
