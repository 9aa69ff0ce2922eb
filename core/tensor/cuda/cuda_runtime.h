#pragma once

namespace tensord::cuda {

// Makes the devices of CUDA known as a DeviceRuntime; call before threads start. Does nothing more than that, so it is
// safe without a driver.
void register_cuda_runtime();

}  // namespace tensord::cuda
