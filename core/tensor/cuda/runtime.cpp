#include "core/tensor/cuda/runtime.h"

#include <utility>
#include <vector>

#include "core/base/error.h"

namespace tensord::cuda {

void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // a sticky error would be reported again by the next call
  const ErrorCode code = status == cudaErrorMemoryAllocation ? ErrorCode::kResourceExhausted : ErrorCode::kInternal;
  fail(code, what, ": ", cudaGetErrorString(status));
}

int device_count() {
  static const int count = [] {
    int found = 0;
    if (cudaGetDeviceCount(&found) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      return 0;
    }
    return found;
  }();
  return count;
}

const DeviceProperties& device_properties(int index) {
  static const std::vector<DeviceProperties> all = [] {
    std::vector<DeviceProperties> out(static_cast<size_t>(device_count()));
    for (int i = 0; i < device_count(); ++i) {
      cudaDeviceProp properties;
      check_cuda(cudaGetDeviceProperties(&properties, i), "cudaGetDeviceProperties");
      out[static_cast<size_t>(i)] = {properties.name, properties.major, properties.minor,
                                     properties.multiProcessorCount, static_cast<uint64_t>(properties.totalGlobalMem)};
    }
    return out;
  }();
  if (index < 0 || index >= device_count()) fail(ErrorCode::kNotFound, "there is no device cuda:", index);
  return all[static_cast<size_t>(index)];
}

DeviceScope::DeviceScope(int index) {
  int current = 0;
  check_cuda(cudaGetDevice(&current), "cudaGetDevice");
  if (current == index) return;
  check_cuda(cudaSetDevice(index), "cudaSetDevice");
  previous_ = current;
}
DeviceScope::~DeviceScope() {
  if (previous_ >= 0) static_cast<void>(cudaSetDevice(previous_));
}

Stream::Stream(int device) : device_(device) {
  const DeviceScope scope(device);
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
}
Stream::~Stream() {
  if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
}
Stream::Stream(Stream&& other) noexcept : device_(other.device_), stream_(std::exchange(other.stream_, nullptr)) {}
Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(stream_, other.stream_);
  return *this;
}
void Stream::synchronize() const { check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

Event::Event(int device) : device_(device) {
  const DeviceScope scope(device);
  check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
}
Event::~Event() {
  if (event_ != nullptr) static_cast<void>(cudaEventDestroy(event_));
}
Event::Event(Event&& other) noexcept : device_(other.device_), event_(std::exchange(other.event_, nullptr)) {}
Event& Event::operator=(Event&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(event_, other.event_);
  return *this;
}
void Event::record(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "cudaEventRecord"); }
void Event::make_wait(cudaStream_t stream) const {
  check_cuda(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
}
bool Event::is_done() const {
  const cudaError_t status = cudaEventQuery(event_);
  if (status == cudaErrorNotReady) return false;
  check_cuda(status, "cudaEventQuery");
  return true;
}
void Event::synchronize() const { check_cuda(cudaEventSynchronize(event_), "cudaEventSynchronize"); }

void copy_to_device(void* target, const void* source, size_t size_bytes, cudaStream_t stream) {
  check_cuda(cudaMemcpyAsync(target, source, size_bytes, cudaMemcpyHostToDevice, stream), "copy to the device");
}
void copy_to_host(void* target, const void* source, size_t size_bytes, cudaStream_t stream) {
  check_cuda(cudaMemcpyAsync(target, source, size_bytes, cudaMemcpyDeviceToHost, stream), "copy from the device");
}
void copy_on_device(void* target, const void* source, size_t size_bytes, cudaStream_t stream) {
  check_cuda(cudaMemcpyAsync(target, source, size_bytes, cudaMemcpyDeviceToDevice, stream), "copy on the device");
}

}  // namespace tensord::cuda
