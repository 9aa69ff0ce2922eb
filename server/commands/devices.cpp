#include <CLI/CLI.hpp>

#include <iostream>

#include "core/tensor/cuda/plugin.h"
#include "core/tensor/cuda/runtime.h"
#include "server/commands/commands.h"

namespace tensord::server {
namespace {

void print_devices() {
  std::cout << "cpu\n";
  if (!cuda::why_no_devices().empty()) {
    std::cout << cuda::why_no_devices() << '\n';
    return;
  }
  std::cout << cuda::api().name << '\n';
  for (int i = 0; i < cuda::device_count(); ++i) {
    const cuda::DeviceProperties& device = cuda::device_properties(i);
    uint64_t free_bytes = 0, total_bytes = 0;
    cuda::check_cuda(cuda::api().memory_info(i, &free_bytes, &total_bytes), "memory of a device");
    std::cout << "cuda:" << i << "  " << device.name << ", compute capability " << device.major << '.' << device.minor
              << ", " << device.multiprocessors << " multiprocessors, " << (free_bytes >> 20) << " of "
              << (total_bytes >> 20) << " MiB free\n";
  }
  for (int i = 0; const char* const state = cuda::api().library_state(i); ++i) std::cout << state << '\n';
}

}  // namespace

void add_devices_command(CLI::App& app, int* exit_code) {
  CLI::App* const command =
      app.add_subcommand("devices", "Lists the devices of this machine, or says why there is no GPU");
  command->callback([exit_code] {
    print_devices();
    *exit_code = 0;
  });
}

}  // namespace tensord::server
