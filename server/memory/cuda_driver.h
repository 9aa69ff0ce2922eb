#pragma once

#include <cstdint>
#include <string_view>

namespace tensord::server {

// NVIDIA's driver library (libcuda.so.1), as far as memory of other processes on a GPU needs it. It is looked for when
// first asked, so that no build and no package depends on it. Thread-safe.
class CudaDriver {
 public:
  static constexpr size_t kHandleBytes = 64;

  // Memory of another process. The GPU's context is kept as long as it is open.
  struct Memory {
    int device = 0;
    void* context = nullptr;
    uint64_t address = 0;
    uint64_t size_bytes = 0;  // from there to the end of what the process allocated
  };

  // Never destroyed: memory may be closed while the process ends.
  static const CudaDriver& instance();

  // 0: no GPU, or no driver that can be used.
  int device_count() const { return device_count_; }

  // `handle` is what cudaIpcGetMemHandle or cuIpcGetMemHandle of the other process gave. Throws
  // Error{kInvalidArgument}, where it has another length too. REQUIRES: 0 <= device < device_count().
  Memory open(int device, std::string_view handle) const;
  void close(const Memory& memory) const;

  // Copy so many bytes at `offset`, and return when they are there. REQUIRE: they lie in the memory. Throw
  // Error{kFailedPrecondition} when the driver cannot: the GPU failed, or the process's memory is gone.
  void read(const Memory& memory, uint64_t offset, void* to, uint64_t count) const;
  void write(const Memory& memory, uint64_t offset, const void* from, uint64_t count) const;

 private:
  // What this needs of cuda.h, which only CUDA's development packages have. Names end in the version of the form.
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
  // Throws Error with the driver's words.
  [[noreturn]] void fail_call(bool is_argument, const char* call, Result result) const;
  void open_in_context(Memory& memory, const Handle& handle) const;

  Functions functions_;
  int device_count_ = 0;
};

}  // namespace tensord::server
