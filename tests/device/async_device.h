#pragma once

#include <cstddef>
#include <functional>

#include "core/base/device.h"
#include "core/tensor/device_runtime.h"

// A test device of kind kPrivateUse. It exposes, on any machine, code that treats device memory as host memory or
// forgets to wait:
//   - Its memory is mapped twice. The mapping that tensors point to has no access rights, so a host read or write ends
//  with
//       signal 11 on the spot; the device's own work uses the other mapping.
//   - Its work runs as late as the interface allows: when a thread waits for it. A missing wait gives a wrong result
//       every time.
//   - Its kernels are the CPU's (async_kernels.h), and its errors are reported when it is waited for.
namespace tensord::late {

inline constexpr int kDevices = 2;
inline constexpr Device kFirst{kPrivateUse, 0}, kSecond{kPrivateUse, 1};

// Registers the device. Call it before the first look-up of an operator; further calls do nothing.
void install();

// The number of work items in all streams of all devices that no thread has waited for yet.
size_t waiting();

// Enqueues `work` in a stream of the device. It runs with the calling thread's ExecutionContext, except for pointers to
// its stack.
void queue(DeviceStream& stream, std::function<void()> work);
// Enqueues work that depends on something outside the device: it runs when it is first in its stream and `is_ready`
// returns true. Waiting threads poll `is_ready`, which must not block.
void queue(DeviceStream& stream, std::function<bool()> is_ready, std::function<void()> work);

// While one exists, a host access to device memory is counted and continues with whatever is there. For tests that find
// such code; otherwise the access ends the process.
class HostTouches {
 public:
  HostTouches();
  ~HostTouches();
  HostTouches(const HostTouches&) = delete;
  HostTouches& operator=(const HostTouches&) = delete;
  // The number of pages touched since the last call. They are protected again afterwards.
  size_t take();
};

// The address of the same memory in the device's mapping: only for enqueued work.
void* as_seen_by_device(void* data);

}  // namespace tensord::late
