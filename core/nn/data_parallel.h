#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/nn/module.h"

namespace tensord::nn {

// The tensor's parts for the devices, moved there: as many as there are devices, or fewer where it has too few rows.
// They are as PyTorch's chunk makes them: ceil(rows / devices) each, the last has what is left. Recorded.
Tensors scatter(const Tensor& input, std::span<const Device> devices, int64_t dim = 0);
// The parts as one tensor on a device; those without dimensions become a vector. Recorded.
Tensor gather(std::span<const Tensor> parts, Device device, int64_t dim = 0);

struct DataParallelOptions {
  std::optional<Device> output = {};  // where results go; by default the first of the devices
  int64_t dim = 0;                    // of the inputs and results that has the rows
};

// One process, several devices: torch.nn.DataParallel. A forward gives each device a copy of the module's parameters
// and buffers and its part of the rows, and puts the results together; after a backward pass the gradients of all
// copies are added up in the module's own parameters (hooks on these see only the first device's). Devices work side by
// side, as their work is queued; buffers that a forward changes are kept of the first device. Thread-safety: as Module.
class DataParallel final : public Module {
 public:
  // `make` is called once for each device and gives modules that are alike; the first one's is the model, whose values
  // count. Throws Error: kInvalidArgument for no devices, or modules that differ.
  DataParallel(const std::function<std::shared_ptr<Module>()>& make, std::vector<Device> devices,
               DataParallelOptions options = {});
  ~DataParallel() override;

  // All inputs are scattered, and must have as many parts. Inputs lie anywhere.
  Tensors forward(const Tensors& inputs) override;
  void train(bool is_training = true) override;

  Module& module() { return *module_; }

 private:
  struct Copies;

  const std::shared_ptr<Module> module_;
  const std::vector<Device> devices_;
  const DataParallelOptions options_;
  const std::shared_ptr<Copies> copies_;  // hooks know it
};

}  // namespace tensord::nn
