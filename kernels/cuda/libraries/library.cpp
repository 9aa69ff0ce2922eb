#include "kernels/cuda/libraries/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

namespace tensord::cuda {

FunctionsOf::FunctionsOf(const char* file) : file_(file) {
  const char* const asked = std::getenv("TENSORD_CUDA_LIBRARIES");
  if (asked && std::strcmp(asked, "off") == 0) {
    problem_ = "TENSORD_CUDA_LIBRARIES is off";
  } else {
    library_ = open_library(file, problem_);
  }
}

void* FunctionsOf::find(const char* name) {
  void* const found = library_ ? dlsym(library_, name) : nullptr;
  if (!found && problem_.empty()) problem_ = file_ + " has no function " + name;
  return found;
}

}  // namespace tensord::cuda
