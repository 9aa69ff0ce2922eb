#pragma once

#include "tests/device/cuda_fixture.h"

// For tests of NVIDIA's libraries and of their twins (tests/cuda/emulated).
namespace tensord::cuda_tests {

inline bool has_libraries() {
  const char* const asked = std::getenv("TENSORD_CUDA_LIBRARIES");
  return !asked || std::strcmp(asked, "off") != 0;
}

// A function of the emulated devices' library; null if that is another library.
template <class Function>
void twin_function(const char* name, Function*& function) {
  const char* const file = std::getenv("TENSORD_CUDA");
  void* const library = file ? dlopen(file, RTLD_NOW) : nullptr;
  function = library ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
}
// One of NVIDIA's own libraries, where it is installed; else null.
template <class Function>
void nvidia_function(const char* file, const char* name, Function*& function) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) library = dlopen((std::string("/usr/local/cuda/lib64/") + file).c_str(), RTLD_NOW | RTLD_LOCAL);
  function = library ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
}
inline uint64_t library_calls() {
  uint64_t (*calls)() = nullptr;
  twin_function("tensord_cuda_library_calls", calls);
  return calls ? calls() : 0;
}
// Whether these are the emulated devices, whose library counts.
inline bool counts_library_calls() {
  uint64_t (*calls)() = nullptr;
  twin_function("tensord_cuda_library_calls", calls);
  return calls;
}
// What a twin refused last.
inline std::string refusal() {
  const char* (*text)() = nullptr;
  twin_function("tensord_cuda_refusal", text);
  return text ? text() : "these are not the emulated devices";
}

class CudaTwins : public CudaDevice {
 protected:
  void SetUp() override {
    CudaDevice::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!counts_library_calls()) GTEST_SKIP() << "these are not the emulated devices";
  }
};

}  // namespace tensord::cuda_tests
