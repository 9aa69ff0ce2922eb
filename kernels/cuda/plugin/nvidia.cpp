// libtensord_cuda.so over the CUDA runtime. It never ran on a chip yet; see ARCHITECTURE.md.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <string>
#include <utility>

#include "core/tensor/cuda/api.h"
#include "kernels/cuda/libraries/library.h"
#include "kernels/cuda/plugin/table.h"

namespace tensord::cuda {
namespace {

thread_local std::string last_text;

// Errors after which every call of the process fails; the runtime repeats them from then on.
bool is_lost(cudaError_t status) {
  switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorUnknown: return true;
    default: return false;
  }
}

Outcome outcome_of(cudaError_t status) {
  if (status == cudaSuccess) return Outcome::kDone;
  static_cast<void>(cudaGetLastError());
  if (status == cudaErrorNotReady) return Outcome::kNotReady;
  last_text = std::string(cudaGetErrorString(status)) + " (" + cudaGetErrorName(status) + ")";
  if (status == cudaErrorMemoryAllocation) return Outcome::kOutOfMemory;
  return is_lost(status) ? Outcome::kLost : Outcome::kRefused;
}

// Selects a device for the calling thread.
class Current {
 public:
  explicit Current(int device) {
    static_cast<void>(cudaGetDevice(&before_));
    status_ = before_ == device ? cudaSuccess : cudaSetDevice(device);
  }
  ~Current() { static_cast<void>(cudaSetDevice(before_)); }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  template <class Fn>
  Outcome run(const Fn& fn) const {
    return outcome_of(status_ == cudaSuccess ? fn() : status_);
  }

 private:
  int before_ = 0;
  cudaError_t status_ = cudaSuccess;
};

const char* error_text() { return last_text.c_str(); }

Outcome properties(int device, DeviceProperties* out) {
  cudaDeviceProp found;
  const Outcome outcome = outcome_of(cudaGetDeviceProperties(&found, device));
  if (outcome != Outcome::kDone) return outcome;
  std::string(found.name).copy(out->name, sizeof(out->name) - 1);
  out->major = found.major;
  out->minor = found.minor;
  out->multiprocessors = found.multiProcessorCount;
  out->threads_of_multiprocessor = found.maxThreadsPerMultiProcessor;
  out->max_shared_bytes = static_cast<int32_t>(found.sharedMemPerBlockOptin);
  out->memory_bytes = found.totalGlobalMem;
  return Outcome::kDone;
}
Outcome memory_info(int device, uint64_t* free_bytes, uint64_t* total_bytes) {
  size_t unused = 0, total = 0;
  const Outcome outcome = Current(device).run([&] { return cudaMemGetInfo(&unused, &total); });
  *free_bytes = unused;
  *total_bytes = total;
  return outcome;
}
Outcome set_device(int device, int* before) {
  int current = 0;
  const cudaError_t asked = cudaGetDevice(&current);
  if (asked != cudaSuccess) return outcome_of(asked);
  if (before) *before = current;
  return current == device ? Outcome::kDone : outcome_of(cudaSetDevice(device));
}
Outcome synchronize_device(int device) {
  return Current(device).run([] { return cudaDeviceSynchronize(); });
}

Outcome allocate(int device, size_t size_bytes, void** data) {
  return Current(device).run([&] { return cudaMalloc(data, size_bytes); });
}
Outcome free_memory(int device, void* data) {
  return Current(device).run([&] { return cudaFree(data); });
}
Outcome allocate_host(size_t size_bytes, void** data) {
  return outcome_of(cudaHostAlloc(data, size_bytes, cudaHostAllocPortable | cudaHostAllocMapped));
}
Outcome free_host(void* data) { return outcome_of(cudaFreeHost(data)); }

Outcome make_stream(int device, int priority, StreamHandle* stream) {
  return Current(device).run([&] { return cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, priority); });
}
Outcome destroy_stream(StreamHandle stream) { return outcome_of(cudaStreamDestroy(stream)); }
Outcome synchronize_stream(StreamHandle stream) { return outcome_of(cudaStreamSynchronize(stream)); }
Outcome priority_range(int device, int* least, int* greatest) {
  return Current(device).run([&] { return cudaDeviceGetStreamPriorityRange(least, greatest); });
}

Outcome make_event(int device, EventHandle* event) {
  return Current(device).run([&] { return cudaEventCreateWithFlags(event, cudaEventDisableTiming); });
}
Outcome destroy_event(EventHandle event) { return outcome_of(cudaEventDestroy(event)); }
Outcome record_event(EventHandle event, StreamHandle stream) { return outcome_of(cudaEventRecord(event, stream)); }
Outcome wait_event(StreamHandle stream, EventHandle event) { return outcome_of(cudaStreamWaitEvent(stream, event, 0)); }
Outcome query_event(EventHandle event) { return outcome_of(cudaEventQuery(event)); }
Outcome synchronize_event(EventHandle event) { return outcome_of(cudaEventSynchronize(event)); }

Outcome copy(void* to, const void* from, size_t size_bytes, StreamHandle stream) {
  return outcome_of(cudaMemcpyAsync(to, from, size_bytes, cudaMemcpyDefault, stream));
}
Outcome copy_peer(void* to, int to_device, const void* from, int from_device, size_t size_bytes, StreamHandle stream) {
  return outcome_of(cudaMemcpyPeerAsync(to, to_device, from, from_device, size_bytes, stream));
}
Outcome fill(void* data, uint8_t byte, size_t size_bytes, StreamHandle stream) {
  return outcome_of(cudaMemsetAsync(data, byte, size_bytes, stream));
}
Outcome check_launch() { return outcome_of(cudaGetLastError()); }

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

const CudaApi* make_api() {
  static std::string name, problem;
  int count = 0, driver = 0, runtime = 0;
  static_cast<void>(cudaDriverGetVersion(&driver));
  static_cast<void>(cudaRuntimeGetVersion(&runtime));
  const cudaError_t status = cudaGetDeviceCount(&count);
  static_cast<void>(cudaGetLastError());
  name = "CUDA " + version_text(runtime) + ", driver of CUDA " + version_text(driver);
  if (driver == 0) {
    problem = "there is no NVIDIA driver";
  } else if (status != cudaSuccess) {
    problem = name + ": " + cudaGetErrorString(status);
  } else if (count == 0) {
    problem = name + ": the driver knows no device";
  }
  static const CudaApi api{kCudaInterface,
                           name.c_str(),
                           status == cudaSuccess ? count : 0,
                           problem.c_str(),
                           "libcuda.so.1",
                           error_text,
                           properties,
                           memory_info,
                           set_device,
                           synchronize_device,
                           allocate,
                           free_memory,
                           allocate_host,
                           free_host,
                           make_stream,
                           destroy_stream,
                           synchronize_stream,
                           priority_range,
                           make_event,
                           destroy_event,
                           record_event,
                           wait_event,
                           query_event,
                           synchronize_event,
                           copy,
                           copy_peer,
                           fill,
                           kernels::strided_copy,
                           kernels::kernel_table(),
                           kernels::library_table(),
                           kernels::library_state,
                           check_launch};
  return &api;
}

}  // namespace

void* open_library(const char* file, std::string& problem) {
  if (void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL)) return library;
  problem = dlerror();
  void* const library = dlopen((std::string("/usr/local/cuda/lib64/") + file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library) problem.clear();
  return library;
}
Outcome refuse_call(std::string text) {
  last_text = std::move(text);
  return Outcome::kRefused;
}
Outcome no_memory_for_call(std::string text) {
  last_text = std::move(text);
  return Outcome::kOutOfMemory;
}
int current_device() {
  int device = 0;
  static_cast<void>(cudaGetDevice(&device));
  return device;
}

}  // namespace tensord::cuda

extern "C" [[gnu::visibility("default")]] const tensord::cuda::CudaApi* tensord_cuda_api() {
  static const tensord::cuda::CudaApi* const api = tensord::cuda::make_api();
  return api;
}
