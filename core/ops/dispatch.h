#pragma once

#include <span>
#include <vector>

#include "core/ops/op.h"

// Finds the kernel of a call. See "Life of a call" in ARCHITECTURE.md.
namespace tensord::ops {

// The keys of the arguments alone, without the thread's. Does not throw.
CallKeys keys_of(const Op& op, std::span<const Value> arguments);

// Continues a call at the highest of its keys that the operator has a kernel for. Throws Error{kUnimplemented} naming
// the kernels that it has if the table has none.
void redispatch(const Op& op, const CallKeys& keys, std::span<const Value> arguments, std::vector<Value>& returns);

// Whether the table has a kernel for tensors of this layout and device.
bool has_kernel(const Op& op, const Tensor& tensor);
// Throws Error{kUnimplemented}: "aten::foo has no kernel for SparseCSR on cuda; it has: CPU, CUDA, SparseCOO (CPU)".
[[noreturn]] void fail_no_kernel(const Op& op, const CallKeys& keys);
// The kernels of the operator, as in that message.
std::string kernels_of(const Op& op);
// Throws Error{kInvalidArgument} for tensors on two devices.
void check_one_device(const CallKeys& keys);

// The function by which the table runs a kernel for these layouts.
KernelFunction::Run runner_of(const KernelFunction& kernel, DispatchKeySet layouts);
// Kernels shared by many tables: in-place and out= variants (for complex numbers: the functional operator and a copy),
// and shape inference for tensors without data.
extern const KernelFunction kInplaceVariant, kOutVariant, kComplexVariant, kShapesOrCode;
// In the cells of devices without code of an operator that has RunsOnHost.
extern const KernelFunction kOnHost;
// For a functionality of observers (call_observer.h): the kernel that reports the call. Null if the operator is not
// reported.
const KernelFunction* tracing_kernel(const Op& op);
const KernelFunction* recording_kernel(const Op& op);

}  // namespace tensord::ops
