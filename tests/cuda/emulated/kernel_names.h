#pragma once

#include <string>

namespace tensord::cuda::emulated {

// The name of a function of this library, as `void tensord::kernels::(anonymous namespace)::sum<float>(…)`; "" for
// another address. Not fast.
std::string kernel_name(const void* kernel);
// The path of this library.
const std::string& this_library();

// A kernel by the PTX of nvcc (tests/cuda/ptx), which gets its parameters as bytes.
using PtxFunction = void (*)(const void* parameters);
// At start: `mangled` is nvcc's name.
bool add_ptx(const char* mangled, PtxFunction function);
// Null where the kernel is not among them. Called once for a kernel.
PtxFunction ptx_of(const void* kernel);

}  // namespace tensord::cuda::emulated
