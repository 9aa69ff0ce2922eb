#include "tests/cuda/emulated/libraries.h"

#include <dlfcn.h>
#include <omp.h>

#include <cstdint>
#include <utility>

#include "kernels/cuda/libraries/library.h"

namespace tensord::cuda {

// The twins' functions are this library's own.
void* open_library(const char*, std::string& problem) {
  Dl_info info{};
  void* library = nullptr;
  if (dladdr(reinterpret_cast<const void*>(&emulated::require), &info))
    library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (!library) problem = "the emulated devices' library does not find itself";
  return library;
}

namespace emulated {

uint64_t library_calls = 0;

void queue_call(StreamHandle stream, std::function<void()> work) {
  ++library_calls;
  queue_work(stream, std::move(work));
}

void queue_lapack(StreamHandle stream, std::function<void()> work) {
  queue_call(stream, [work = std::move(work)] {
    const int before = omp_get_max_threads();
    omp_set_num_threads(1);
    work();
    omp_set_num_threads(before);
  });
}

std::string& refusal() {
  thread_local std::string text;
  return text;
}

void require(bool is_right, int status, const std::string& text) {
  if (!is_right) throw Refused{status, text};
}

void require_memory(int device, const void* address, size_t count, size_t size, int status, const std::string& what) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  require(at % size == 0, status, what + " is not aligned to its elements");
  const size_t room = room_on(device, address);
  require(room > 0, status, what + " is not memory of the device");
  require(room / size >= count, status, what + " ends beyond what was allocated");
}

}  // namespace emulated
}  // namespace tensord::cuda

// For tests/device/cuda_library_fixture.h: what a twin last refused, and how many pieces of work the twins have
// queued.
extern "C" [[gnu::visibility("default")]] uint64_t tensord_cuda_library_calls() {
  return tensord::cuda::emulated::library_calls;
}
extern "C" [[gnu::visibility("default")]] const char* tensord_cuda_refusal() {
  return tensord::cuda::emulated::refusal().c_str();
}
