#pragma once

#include <cstdint>
#include <string_view>

namespace tensord::server {

// The parts of NVIDIA's driver library (libcuda.so.1) for GPU memory of other processes. It is loaded on first use, so
// builds and packages do not depend on it. Its contexts are those of the engine, whose kernels reach the same
// addresses. Thread-safe.
class CudaDriver {
 public:
  static constexpr size_t kHandleBytes = 64;

  // GPU memory of another process. It keeps the GPU's context alive while it is open.
  struct Memory {
    int device = 0;
    void* context = nullptr;
    uint64_t address = 0;
    uint64_t size_bytes = 0;  // from the address to the end of the allocation
  };

  // Never destroyed, because memory may be closed while the process exits.
  static const CudaDriver& instance();

  // 0 if there is no GPU or no usable driver.
  int device_count() const { return device_count_; }

  // `handle` comes from cudaIpcGetMemHandle or cuIpcGetMemHandle of the other process. Throws Error{kInvalidArgument},
  // also for a handle of the wrong length. REQUIRES: 0 <= device < device_count().
  Memory open(int device, std::string_view handle) const;
  void close(const Memory& memory) const;

  // Copy synchronously between the host and `offset` in the memory. REQUIRE: the range is inside the memory. Throw
  // Error{kFailedPrecondition} if the driver fails: the GPU failed, or the memory no longer exists.
  void read(const Memory& memory, uint64_t offset, void* to, uint64_t count) const;
  void write(const Memory& memory, uint64_t offset, const void* from, uint64_t count) const;

 private:
  // Declarations from cuda.h, which only CUDA's development packages have. The names end in the version of the
  // function.
  using Result = int;
  using Context = void*;
  struct Handle {
    char bytes[kHandleBytes];
  };
  struct Functions {
    Result (*init)(unsigned flags) = nullptr;
    Result (*device_count)(int* count) = nullptr;
    Result (*device)(int* device, int ordinal) = nullptr;
    Result (*retain_context)(Context* context, int device) = nullptr;
    Result (*release_context)(int device) = nullptr;
    Result (*push_context)(Context context) = nullptr;
    Result (*pop_context)(Context* context) = nullptr;
    Result (*synchronize)() = nullptr;
    Result (*open_handle)(uint64_t* address, Handle handle, unsigned flags) = nullptr;
    Result (*close_handle)(uint64_t address) = nullptr;
    Result (*address_range)(uint64_t* base, size_t* size_bytes, uint64_t address) = nullptr;
    Result (*copy_to_host)(void* to, uint64_t from, size_t count) = nullptr;
    Result (*copy_to_device)(uint64_t to, const void* from, size_t count) = nullptr;
    Result (*error_text)(Result error, const char** text) = nullptr;
  };
  class CurrentContext;

  CudaDriver();
  bool load_functions(void* library);
  // Throws Error with the driver's error message.
  [[noreturn]] void fail_call(bool is_argument, const char* call, Result result) const;
  void open_in_context(Memory& memory, const Handle& handle) const;

  Functions functions_;
  int device_count_ = 0;
};

}  // namespace tensord::server
