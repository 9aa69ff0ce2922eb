#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "core/base/error.h"
#include "core/tensor/cuda/plugin.h"
#include "core/tensor/cuda/runtime.h"
#include "core/tensor/tensor.h"

// What tests on CUDA's devices share: the emulated ones, where TENSORD_CUDA names their library.
namespace tensord::cuda_tests {

inline constexpr Device kGpu{kCUDA, 0}, kOther{kCUDA, 1};

class CudaDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda::device_count() > 0) return;
    // Where the library is named, there must be devices.
    const char* const named = std::getenv("TENSORD_CUDA");
    if (named && *named) FAIL() << cuda::why_no_devices();
    GTEST_SKIP() << cuda::why_no_devices();
  }
};

// What the call throws, or "".
inline std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Runs a kernel of tests/cuda/emulated/faults.cu; "" or what it ended with.
inline std::string run_tested(const char* name, const Tensor& out) {
  void* const library = dlopen(std::getenv("TENSORD_CUDA"), RTLD_NOW);
  using Run = bool (*)(const char*, void*, cuda::StreamHandle);
  const auto run = library ? reinterpret_cast<Run>(dlsym(library, "tensord_cuda_run_tested")) : nullptr;
  if (!run) return "these are not the emulated devices";
  DeviceStream& stream = current_stream(kGpu);
  const cuda::DeviceScope scope(0);
  if (!run(name, out.raw_data(), static_cast<cuda::StreamHandle>(stream.handle()))) return "no such kernel";
  return message_of([&] {
    cuda::check_cuda(cuda::api().check_launch(), "launch");
    stream.synchronize();
  });
}

}  // namespace tensord::cuda_tests
