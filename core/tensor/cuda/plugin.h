#pragma once

#include <string>

#include "core/tensor/cuda/api.h"

namespace tensord::cuda {

// The library libtensord_cuda.so: the file that the environment variable TENSORD_CUDA names, or the one beside the
// program, in ../lib/tensord or lib/tensord. It is opened at the first call, and never closed. Null where there is none
// of this build, or no device; TENSORD_CUDA=off is none.
const CudaApi* find_api();
// The same of where there are devices. Throws Error{kUnimplemented} with the reason otherwise.
const CudaApi& api();

// Why there are no devices: "no GPU: …"; empty where there are some.
const std::string& why_no_devices();

}  // namespace tensord::cuda
