#include "tests/cuda/emulated/kernel_limits.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/cuda/emulated/kernel_names.h"

namespace tensord::cuda::emulated {
namespace {

std::map<std::string, KernelLimits> read_table() {
  std::map<std::string, KernelLimits> out;
  const char* const named = std::getenv("TENSORD_CUDA_LIMITS");
  const std::string& library = this_library();
  std::ifstream in(named ? named : library.substr(0, library.rfind('/') + 1) + "kernel_limits.txt");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    KernelLimits limits;
    std::string name;
    words >> limits.registers >> limits.shared_bytes >> std::ws;
    if (std::getline(words, name)) out[name] = limits;
  }
  return out;
}

}  // namespace

KernelLimits limits_of(const void* kernel) {
  static const auto* const table = new std::map<std::string, KernelLimits>(read_table());
  if (table->empty()) return {};
  const auto found = table->find(kernel_name(kernel));
  return found == table->end() ? KernelLimits{} : found->second;
}

}  // namespace tensord::cuda::emulated
