#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "core/base/device.h"

// The CUDA runtime as tensord uses it: devices, streams, events, copies. Only built with
// TENSORD_WITH_CUDA. The runtime is linked statically, so a machine without a driver starts
// and simply has no devices.
namespace tensord::cuda {

// Throws Error{kResourceExhausted} when the device has no memory, kInternal otherwise; the
// message is "<what>: <CUDA's text>".
void check_cuda(cudaError_t status, const char* what);

// 0 without a driver or without devices. Asked once.
int device_count();

struct DeviceProperties {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  uint64_t memory_bytes = 0;
};
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

// Owns a non-blocking stream. Movable; may be used from one thread at a time.
class Stream {
 public:
  explicit Stream(int device);
  ~Stream();
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;

  cudaStream_t get() const { return stream_; }
  int device() const { return device_; }
  void synchronize() const;

 private:
  int device_ = 0;
  cudaStream_t stream_ = nullptr;
};

// A point in a stream's work. Timing is off, so recording is cheap.
class Event {
 public:
  explicit Event(int device);
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;

  void record(cudaStream_t stream);
  // Makes later work on `stream` wait for this event; the caller goes on.
  void make_wait(cudaStream_t stream) const;
  bool is_done() const;
  void synchronize() const;

 private:
  int device_ = 0;
  cudaEvent_t event_ = nullptr;
};

// Asynchronous on `stream`; the host side should be pinned, or the call may block.
void copy_to_device(void* target, const void* source, size_t size_bytes, cudaStream_t stream);
void copy_to_host(void* target, const void* source, size_t size_bytes, cudaStream_t stream);
void copy_on_device(void* target, const void* source, size_t size_bytes, cudaStream_t stream);

}  // namespace tensord::cuda
