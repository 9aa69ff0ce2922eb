#pragma once

namespace tensord::cuda {

// An address that kernels read or write, in the plain structs that they get. Only kernels make a pointer of it
// (kernels/cuda/device.cuh), so that nobody does on the host.
struct DeviceAddress {
  DeviceAddress() = default;
  DeviceAddress(const void* at) : at(at) {}
  const void* at = nullptr;
};

}  // namespace tensord::cuda
