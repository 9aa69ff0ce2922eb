#pragma once

// CUDA devices: x.to(Device{kCUDA, 0}) moves a tensor, module->to(…) those of a module. Work on a device is queued in
// the calling thread's current stream. Errors of kernels are thrown where the host waits: synchronize, item,
// to(Device{}).
#include "tensord/tensor.h"
//
#include "core/base/execution_context.h"
#include "core/tensor/cuda/cuda_runtime.h"
#include "core/tensor/cuda/plugin.h"
#include "core/tensor/cuda/runtime.h"
#include "core/tensor/memory/caching_allocator.h"

namespace tensord::cuda {

// From core: device_count(); why_no_devices(), the reason if there is none; make_stream(index, priority).

inline bool is_available() { return device_count() > 0; }

inline Device device_of(int index) {
  check(index >= 0 && index < 128, "there is no device cuda:", index);
  const Device device{kCUDA, static_cast<int8_t>(index)};
  device_runtime(device);
  return device;
}

// Waits for all work on the device.
inline void synchronize(int index = 0) { device_runtime(device_of(index)).synchronize(index); }

inline DeviceStream& current_stream(int index = 0) { return tensord::current_stream(device_of(index)); }
inline std::unique_ptr<DeviceEvent> make_event() { return device_runtime(device_of(0)).make_event(); }

// While this lives, the calling thread's work on the stream's device goes to the stream.
class StreamGuard {
 public:
  explicit StreamGuard(DeviceStream& stream) : scope_(&stream) {}

 private:
  const ContextPart<&ExecutionContext::stream> scope_;
};

inline AllocatorStats memory_stats(int index = 0) { return allocator_for(device_of(index)).stats(); }
// Returns the cached memory that no tensor uses.
inline void empty_cache() {
  for (int index = 0; index < device_count(); ++index) allocator_for(device_of(index)).trim();
}

}  // namespace tensord::cuda
