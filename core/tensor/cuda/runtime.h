#pragma once

#include "core/tensor/cuda/api.h"

// Devices of CUDA over the library's table of functions.
namespace tensord::cuda {

// Throws Error{kResourceExhausted} when the device has no memory, kInternal otherwise; the message is "<what>: <CUDA's
// text>". An error after which the device is lost is kept for why_lost().
void check_cuda(Outcome outcome, const char* what);

// What broke the use of CUDA in this process; empty when nothing did. Every call fails from then on.
const char* why_lost();

// 0 without a driver or without devices.
int device_count();
// Throws Error{kNotFound} on a bad index.
const DeviceProperties& device_properties(int index);

// Makes a device the calling thread's current one for a scope.
class DeviceScope {
 public:
  explicit DeviceScope(int index);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int previous_ = -1;
};

}  // namespace tensord::cuda
