#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/cuda/copy_job.h"

// What the engine knows of CUDA: a table of plain functions, which a shared library gives that is opened at run time
// (plugin.h). The engine itself includes no header of CUDA and links nothing of it. The functions are thread-safe.
struct CUstream_st;
struct CUevent_st;

namespace tensord::cuda {

// The library and the engine must be of one build. Counted up with each change of this header or of what kernels get.
inline constexpr char kCudaInterface[] = "tensord cuda 3 " __VERSION__;

using StreamHandle = CUstream_st*;  // cudaStream_t
using EventHandle = CUevent_st*;    // cudaEvent_t

enum class Outcome : int32_t {
  kDone,
  kNotReady,     // of queries
  kOutOfMemory,  // nothing happened
  kRefused,      // nothing happened; error_text() says why
  kLost,         // the device, or the process's use of it, is broken from now on ("sticky errors")
};

struct DeviceProperties {
  char name[256] = {};
  int32_t major = 0, minor = 0;  // compute capability
  int32_t multiprocessors = 0;
  int32_t threads_of_multiprocessor = 0;
  int32_t max_shared_bytes = 0;  // of a block, when it opts in
  uint64_t memory_bytes = 0;
};

struct CudaApi {
  const char* interface;  // kCudaInterface
  const char* name;       // "CUDA 13.0, driver 13.0"
  // 0: no driver, or no devices; problem() says which.
  int32_t device_count;
  const char* problem;
  // The file of the driver's own functions (cuIpcOpenMemHandle and others), which use the same contexts.
  const char* driver_library;

  // Of the calling thread's last call that was not done. Valid until its next call.
  const char* (*error_text)();

  Outcome (*properties)(int device, DeviceProperties* out);
  Outcome (*memory_info)(int device, uint64_t* free_bytes, uint64_t* total_bytes);
  // The calling thread's device; `before` may be null.
  Outcome (*set_device)(int device, int* before);
  Outcome (*synchronize_device)(int device);

  Outcome (*allocate)(int device, size_t size_bytes, void** data);
  Outcome (*free)(int device, void* data);                   // waits for the device
  Outcome (*allocate_host)(size_t size_bytes, void** data);  // pinned; kernels of all devices reach it
  Outcome (*free_host)(void* data);

  // No stream is ordered against the legacy default stream. The lower the number the sooner, 0 as a rule.
  Outcome (*make_stream)(int device, int priority, StreamHandle* stream);
  Outcome (*destroy_stream)(StreamHandle stream);
  Outcome (*synchronize_stream)(StreamHandle stream);
  Outcome (*priority_range)(int device, int* least, int* greatest);

  Outcome (*make_event)(int device, EventHandle* event);
  Outcome (*destroy_event)(EventHandle event);
  Outcome (*record_event)(EventHandle event, StreamHandle stream);  // of the same device
  Outcome (*wait_event)(StreamHandle stream, EventHandle event);    // what comes later in the stream
  Outcome (*query_event)(EventHandle event);
  Outcome (*synchronize_event)(EventHandle event);

  // The calling thread's device is the stream's. Memory of the host that is not pinned is read before copy() returns.
  Outcome (*copy)(void* to, const void* from, size_t size_bytes, StreamHandle stream);
  Outcome (*copy_peer)(void* to, int to_device, const void* from, int from_device, size_t size_bytes,
                       StreamHandle stream);
  Outcome (*fill)(void* data, uint8_t byte, size_t size_bytes, StreamHandle stream);

  // Launches. They report by check_launch, of the calling thread.
  void (*copy_strided)(const StridedCopyJob& job, StreamHandle stream);
  const void* kernels;    // kernels::KernelTable, kernels/cuda/kernels.h
  const void* libraries;  // kernels::LibraryTable, kernels/cuda/library_table.h
  // "cuBLASLt is there", or why not and what is done without it; null after the last. Opens the libraries.
  const char* (*library_state)(int index);
  Outcome (*check_launch)();
};

// The library's only exported function: `extern "C" [[gnu::visibility("default")]] const CudaApi* tensord_cuda_api()`.
using CudaApiFunction = const CudaApi* (*)();
inline constexpr char kCudaApiFunction[] = "tensord_cuda_api";

}  // namespace tensord::cuda
