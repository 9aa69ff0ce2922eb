#pragma once

#include <string>

#include "core/tensor/cuda/api.h"

// What the callers of NVIDIA's libraries need of the two plug-ins: plugin/nvidia.cpp opens the libraries where the
// system finds them or in /usr/local/cuda/lib64, tests/cuda/emulated/libraries.cpp gives functions of the same names
// that check their arguments.
namespace tensord::cuda {

// The address of a library for dlsym, or null; then `problem` says why. It stays open.
void* open_library(const char* file, std::string& problem);
// Keeps the text for CudaApi::error_text. Returns kRefused.
Outcome refuse_call(std::string text);
Outcome no_memory_for_call(std::string text);
// The calling thread's device.
int current_device();

// Reads the addresses of a library's functions, once each.
class FunctionsOf {
 public:
  // With TENSORD_CUDA_LIBRARIES=off no library is opened.
  explicit FunctionsOf(const char* file);
  template <class Function>
  void read(const char* name, Function*& to) {
    to = reinterpret_cast<Function*>(find(name));
  }
  const std::string& problem() const { return problem_; }  // empty: all functions are there

 private:
  void* find(const char* name);
  std::string file_, problem_;
  void* library_ = nullptr;
};

// The functions of a library, which is opened at the first call and stays open. FUNCTIONS(F) lists them, as members of
// `Functions`.
template <class Functions>
struct Library {
  Functions call;
  std::string problem;  // empty: all functions are there
};
#define TENSORD_OPEN_LIBRARY(NAME, FUNCTIONS, FILE) \
  const Library<Functions>& NAME() {                \
    static const auto* const once = [] {            \
      auto* const out = new Library<Functions>;     \
      FunctionsOf file(FILE);                       \
      FUNCTIONS(TENSORD_READ_FUNCTION)              \
      out->problem = file.problem();                \
      return out;                                   \
    }();                                            \
    return *once;                                   \
  }
#define TENSORD_READ_FUNCTION(RESULT, FUNCTION, PARAMETERS) file.read(#FUNCTION, out->call.FUNCTION);

}  // namespace tensord::cuda
