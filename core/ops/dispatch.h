#pragma once

#include <span>
#include <vector>

#include "core/ops/op.h"

// From a call to its code. See "Life of a call" in ARCHITECTURE.md.
namespace tensord::ops {

// What the arguments alone ask for, without the thread's part. Throws nothing.
CallKeys keys_of(const Op& op, std::span<const Value> arguments);

// Goes on with a call: to the highest of its keys that the operator has code for. Throws Error{kUnimplemented} that
// names what it has code for where the table has none.
void redispatch(const Op& op, const CallKeys& keys, std::span<const Value> arguments, std::vector<Value>& returns);

// Throws Error{kUnimplemented}: "aten::foo has no kernel for SparseCSR on cuda; it has: CPU, CUDA, SparseCOO (CPU)".
[[noreturn]] void fail_no_kernel(const Op& op, const CallKeys& keys);
// What the operator has code for, as that message says it.
std::string kernels_of(const Op& op);
// Throws Error{kInvalidArgument} where tensors of two devices meet.
void check_one_device(const CallKeys& keys);

// How the table runs the code of an operator for these layouts.
KernelFunction::Run runner_of(const KernelFunction& kernel, DispatchKeySet layouts);
// Code that stands in many tables: in-place and out= variants (of complex numbers: the functional operator, copied),
// and shapes alone for tensors without data.
extern const KernelFunction kInplaceVariant, kOutVariant, kComplexVariant, kShapesOrCode;
// For a functionality of observers (call_observer.h): the code that reports the call. Null where the operator is not
// reported.
const KernelFunction* tracing_kernel(const Op& op);
const KernelFunction* recording_kernel(const Op& op);

}  // namespace tensord::ops
