#include "server/memory/cuda_driver.h"

#include <dlfcn.h>

#include <cstring>

#include "core/base/error.h"
#include "core/tensor/cuda/plugin.h"

namespace tensord::server {
namespace {

constexpr int kSuccess = 0;
constexpr unsigned kLazyPeerAccess = 1;  // the only flag that cuIpcOpenMemHandle accepts; it is required

}  // namespace

// Makes a context current on this thread for the object's lifetime.
class CudaDriver::CurrentContext {
 public:
  CurrentContext(const CudaDriver& driver, Context context) : functions_(driver.functions_) {
    const Result result = functions_.push_context(context);
    if (result != kSuccess) driver.fail_call(false, "cuCtxPushCurrent", result);
  }
  ~CurrentContext() {
    Context popped = nullptr;
    functions_.pop_context(&popped);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const Functions& functions_;
};

const CudaDriver& CudaDriver::instance() {
  static const CudaDriver* const driver = new CudaDriver;
  return *driver;
}

CudaDriver::CudaDriver() {
  const cuda::CudaApi* const engine = cuda::find_api();
  void* const library = dlopen(engine ? engine->driver_library : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr || !load_functions(library) || functions_.init(0) != kSuccess) return;
  int count = 0;
  if (functions_.device_count(&count) == kSuccess) device_count_ = count;
}

bool CudaDriver::load_functions(void* library) {
  bool has_all = true;
  const auto load = [&]<class Function>(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    has_all = has_all && function != nullptr;
  };
  load(functions_.init, "cuInit");
  load(functions_.device_count, "cuDeviceGetCount");
  load(functions_.device, "cuDeviceGet");
  load(functions_.retain_context, "cuDevicePrimaryCtxRetain");
  load(functions_.release_context, "cuDevicePrimaryCtxRelease_v2");
  load(functions_.push_context, "cuCtxPushCurrent_v2");
  load(functions_.pop_context, "cuCtxPopCurrent_v2");
  load(functions_.synchronize, "cuCtxSynchronize");
  load(functions_.open_handle, "cuIpcOpenMemHandle_v2");
  load(functions_.close_handle, "cuIpcCloseMemHandle");
  load(functions_.address_range, "cuMemGetAddressRange_v2");
  load(functions_.copy_to_host, "cuMemcpyDtoH_v2");
  load(functions_.copy_to_device, "cuMemcpyHtoD_v2");
  load(functions_.error_text, "cuGetErrorString");
  return has_all;
}

void CudaDriver::fail_call(bool is_argument, const char* call, Result result) const {
  const char* text = nullptr;
  if (functions_.error_text(result, &text) != kSuccess || text == nullptr) text = "unknown error";
  fail(is_argument ? ErrorCode::kInvalidArgument : ErrorCode::kFailedPrecondition, call, ": ", text, " (", result, ")");
}

CudaDriver::Memory CudaDriver::open(int device, std::string_view handle) const {
  check(handle.size() == kHandleBytes, "a handle of CUDA memory has ", kHandleBytes, " bytes, got ", handle.size());
  Handle copy{};
  std::memcpy(copy.bytes, handle.data(), kHandleBytes);
  Memory memory;
  Result result = functions_.device(&memory.device, device);
  if (result != kSuccess) fail_call(true, "cuDeviceGet", result);
  result = functions_.retain_context(&memory.context, memory.device);
  if (result != kSuccess) fail_call(false, "cuDevicePrimaryCtxRetain", result);
  try {
    open_in_context(memory, copy);
  } catch (...) {
    functions_.release_context(memory.device);
    throw;
  }
  return memory;
}

void CudaDriver::open_in_context(Memory& memory, const Handle& handle) const {
  const CurrentContext current(*this, memory.context);
  Result result = functions_.open_handle(&memory.address, handle, kLazyPeerAccess);
  if (result != kSuccess) fail_call(true, "cuIpcOpenMemHandle", result);
  uint64_t base = 0;
  size_t size_bytes = 0;
  result = functions_.address_range(&base, &size_bytes, memory.address);
  if (result != kSuccess) {
    functions_.close_handle(memory.address);
    fail_call(true, "cuMemGetAddressRange", result);
  }
  memory.size_bytes = base + size_bytes - memory.address;
}

void CudaDriver::close(const Memory& memory) const {
  try {
    const CurrentContext current(*this, memory.context);
    functions_.close_handle(memory.address);
  } catch (const Error&) {
    // The device is lost, and its memory with it.
  }
  functions_.release_context(memory.device);
}

void CudaDriver::read(const Memory& memory, uint64_t offset, void* to, uint64_t count) const {
  if (count == 0) return;
  const CurrentContext current(*this, memory.context);
  const Result result = functions_.copy_to_host(to, memory.address + offset, count);
  if (result != kSuccess) fail_call(false, "cuMemcpyDtoH", result);
}

void CudaDriver::write(const Memory& memory, uint64_t offset, const void* from, uint64_t count) const {
  if (count == 0) return;
  const CurrentContext current(*this, memory.context);
  Result result = functions_.copy_to_device(memory.address + offset, from, count);
  if (result != kSuccess) fail_call(false, "cuMemcpyHtoD", result);
  // The copy may still be in progress, and the client reads as soon as it has the answer.
  result = functions_.synchronize();
  if (result != kSuccess) fail_call(false, "cuCtxSynchronize", result);
}

}  // namespace tensord::server
