#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/nn/module.h"

namespace tensord::nn {

// Splits a tensor into chunks and moves them to the devices: one chunk for each device, or fewer if there are too few
// rows. Chunks are those of PyTorch's chunk: ceil(rows / devices) rows each, and the last has the rest. Recorded by
// autograd.
Tensors scatter(const Tensor& input, std::span<const Device> devices, int64_t dim = 0);
// Concatenates the parts on a device; scalars become a vector. Recorded by autograd.
Tensor gather(std::span<const Tensor> parts, Device device, int64_t dim = 0);

struct DataParallelOptions {
  std::optional<Device> output = {};  // the device of results; by default the first of the devices
  int64_t dim = 0;                    // the batch dimension of inputs and results
};

// One process, several devices: torch.nn.DataParallel. A forward copies the module's parameters and buffers to each
// device, gives each device its part of the batch, and gathers the results. After a backward pass the gradients of all
// copies are summed into the module's own parameters (hooks on these see only the first device's). Devices run
// concurrently, because their work is enqueued. Of buffers that a forward changes, the first device's are kept.
// Thread-safety: as Module.
class DataParallel final : public Module {
 public:
  // `make` is called once for each device and must return equal modules. The first is the model, whose values are used.
  // Throws Error{kInvalidArgument} if there are no devices, or if the modules differ.
  DataParallel(const std::function<std::shared_ptr<Module>()>& make, std::vector<Device> devices,
               DataParallelOptions options = {});
  ~DataParallel() override;

  // All inputs are scattered, and must give the same number of parts. Inputs may be on any device.
  Tensors forward(const Tensors& inputs) override;
  void train(bool is_training = true) override;

  Module& module() { return *module_; }

 private:
  struct Copies;

  const std::shared_ptr<Module> module_;
  const std::vector<Device> devices_;
  const DataParallelOptions options_;
  const std::shared_ptr<Copies> copies_;  // shared, because hooks refer to it
};

}  // namespace tensord::nn
