#pragma once

#include <memory>
#include <vector>

#include "core/tensor/device_runtime.h"
#include "server/config/model_config.h"

namespace tensord::server {

// An instance_group as this machine has it: no KIND_AUTO, and every GPU by its number.
struct PlacedGroup {
  Device device;          // of KIND_CPU and KIND_MODEL
  std::vector<int> gpus;  // of KIND_GPU
  bool is_on_gpus() const { return !gpus.empty(); }
};

// Triton's rules: KIND_AUTO is KIND_GPU where there is a GPU and all of `gpus` exist, else KIND_CPU; without `gpus`
// instances are on each GPU. KIND_MODEL is on `otherwise`. Throws Error{kFailedPrecondition} where KIND_GPU finds no
// GPU, with the reason of `tensord devices`, and kInvalidArgument for a GPU that is not there.
PlacedGroup place_group(const InstanceGroupConfig& group, Device otherwise);

// The device of each instance, by group; empty without instance_group.
std::vector<Device> place_instances(const ModelConfig& config, Device otherwise);

// The queue of one worker's work on its device; null on the host.
std::unique_ptr<DeviceStream> make_worker_stream(Device device);

}  // namespace tensord::server
