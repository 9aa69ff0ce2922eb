#include "kernels/cuda/plugin/table.h"

#include <iterator>
#include <string>

namespace tensord::kernels {

const void* kernel_table() {
  static const KernelTable table{
#define KERNEL(NAME, JOB) .NAME = NAME,
#include "kernels/cuda/kernels.def"
#undef KERNEL
  };
  return &table;
}

namespace {

const LibraryTable& libraries() {
  static const LibraryTable table = [] {
    LibraryTable out{};
    add_blas(out);
    add_dnn(out);
    add_fft(out);
    add_solver(out);
    return out;
  }();
  return table;
}

std::string state_of(const char* name, const std::string& problem, const char* instead) {
  return problem.empty() ? std::string(name) + " is there"
                         : std::string("no ") + name + " (" + problem + "): " + instead;
}

}  // namespace

const void* library_table() { return &libraries(); }

const char* library_state(int index) {
  static const std::string states[] = {
      state_of("cuBLASLt", libraries().why_no_blas(), "products run on kernels of tensord's own"),
      state_of("cuDNN", libraries().why_no_dnn(), "convolutions run on kernels of tensord's own"),
      state_of("cuFFT", libraries().why_no_fft(), "Fourier transforms run on the host"),
      state_of("cuSOLVER", libraries().why_no_solver(), "linear algebra runs on the host"),
  };
  return index >= 0 && index < static_cast<int>(std::size(states)) ? states[index].c_str() : nullptr;
}

}  // namespace tensord::kernels
