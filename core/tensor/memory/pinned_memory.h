#pragma once

#include <memory>
#include <optional>

#include "core/tensor/allocator.h"
#include "core/tensor/tensor.h"

namespace tensord {

// Memory of the host that a kind of device reads and writes by itself (page-locked, "pinned"), so that copies between
// the two take no detour. All of this is thread-safe.

// Where such memory comes from, of the host. Called once for a kind, before threads start.
void register_pinned_memory(DeviceKind kind, std::unique_ptr<Allocator> source);

// Whether all of the tensor's memory is pinned, for whatever kind. Throws Error{kInvalidArgument} of an undefined
// tensor.
bool is_pinned(const Tensor& tensor);
// The same of an address of the host, for runtimes.
bool is_pinned_address(const void* data);

// A copy in pinned memory, with the same strides where they are dense, without history; the tensor itself where it is
// pinned. `kind`: of the devices that it is for; those of this build when it says nothing. Charged to the calling
// thread's memory owner as other memory of the host. Throws Error{kUnimplemented} where no device of that kind is, or
// it has no such memory; kInvalidArgument for what is not a dense tensor of the host; kResourceExhausted when there is
// none.
Tensor pin_memory(const Tensor& tensor, std::optional<DeviceKind> kind = std::nullopt);

// Row-major, without values, in memory that is pinned for a kind of device. Throws as pin_memory.
Tensor empty_pinned(std::span<const int64_t> sizes, DType dtype, DeviceKind kind);

}  // namespace tensord
