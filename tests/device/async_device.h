#pragma once

#include <cstddef>
#include <functional>

#include "core/base/device.h"
#include "core/tensor/device_runtime.h"

// A device for tests, of kind kPrivateUse: what is wrong with code that takes memory for the host's, or forgets to
// wait, shows on any machine.
//  - Its memory is mapped twice, without access where tensors say it lies, so that a host that reads or writes it ends
//    with signal 11 there and then; the device's own work goes by the other mapping.
//  - What it is given runs as late as the interface allows: when somebody waits for it. A missing wait is a wrong
//    result, each time.
//  - Its kernels are the processor's (async_kernels.h), its errors come when it is waited for.
namespace tensord::late {

inline constexpr int kDevices = 2;
inline constexpr Device kFirst{kPrivateUse, 0}, kSecond{kPrivateUse, 1};

// Registers the device; before the first look-up of an operator. Again does nothing.
void install();

// Work of all streams of all devices that nobody has waited for yet.
size_t waiting();

// Queues `work` in a stream of the device. It runs with the calling thread's ExecutionContext, without what lives on
// its stack.
void queue(DeviceStream& stream, std::function<void()> work);
// Work that waits for something outside of the device: it runs when it is its turn and `is_ready` says so, which is
// asked again and again, by those who wait, and must wait for nobody.
void queue(DeviceStream& stream, std::function<bool()> is_ready, std::function<void()> work);

// While one lives, a host that touches the device's memory is counted and goes on, with whatever lies there. For tests
// that find out who does; else it ends the process.
class HostTouches {
 public:
  HostTouches();
  ~HostTouches();
  HostTouches(const HostTouches&) = delete;
  HostTouches& operator=(const HostTouches&) = delete;
  // Pages touched since the last call. Then none of them is the host's any more.
  size_t take();
};

// The same memory as the device sees it: for queued work alone.
void* as_seen_by_device(void* data);

}  // namespace tensord::late
