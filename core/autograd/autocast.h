#pragma once

#include <optional>

#include "core/base/execution_context.h"
#include "core/tensor/dtype.h"

// Autocast, with PyTorch's names and meaning: in its scope, matrix products and convolutions compute in bfloat16 or
// float16, and operators that need the range or the digits in float32. What an operator does stands in its line of
// kernels/*/*.ops. The casts are operators that autograd records, so a float32 parameter gets a float32 gradient.
namespace tensord::autograd {

// Called before main wherever this library is linked, as install_recorder.
void install_autocast();

// The type in which the calling thread computes on this kind of device; none outside of scopes.
std::optional<DType> autocast_dtype(DeviceKind device);
inline bool is_autocast_cache_enabled() { return execution_context().autocast.is_cache_enabled; }

// Turns autocast on, or off, for one kind of device until the end of the scope. Scopes nest. Parameters (float32
// leaves that require a gradient) are cast once within the outermost scope and again after each write to them, with the
// cache. The calling thread's, and that of threads that work for it; only the calling thread caches.
// Throws Error{kInvalidArgument} for a device other than CPU and CUDA, and for other types than bfloat16 and float16.
class AutocastGuard {
 public:
  explicit AutocastGuard(DeviceKind device, DType dtype = DType::kBFloat16, bool is_enabled = true,
                         bool is_cache_enabled = true);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  const AutocastState before_;
  const bool was_included_;
};

// Forgets the cast parameters of the calling thread.
void clear_autocast_cache();

}  // namespace tensord::autograd
