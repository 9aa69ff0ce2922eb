#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor/device_runtime.h"
#include "server/config/host_policy_options.h"
#include "server/config/model_config.h"

namespace tensord::server {

// An instance_group resolved for this machine: without KIND_AUTO, and with every GPU by its number.
struct PlacedGroup {
  Device device;          // of KIND_CPU and KIND_MODEL
  std::vector<int> gpus;  // of KIND_GPU
  bool is_on_gpus() const { return !gpus.empty(); }
};

// Triton's rules: KIND_AUTO is KIND_GPU where there is a GPU and all of `gpus` exist, else KIND_CPU; without `gpus`
// instances are on each GPU. KIND_MODEL is on `otherwise`. Throws Error{kFailedPrecondition} where KIND_GPU finds no
// GPU, with the reason of `tensord devices`, and kInvalidArgument for a GPU that is not there.
PlacedGroup place_group(const InstanceGroupConfig& group, Device otherwise);

// The device of each instance, in the order of the groups; empty without instance_group.
std::vector<Device> place_instances(const ModelConfig& config, Device otherwise);
// The policy of each of these instances, of place_instances or of keep_first_device, null without one. Without
// instance_group there are `workers` instances on the host or `device`. Each points into `policies`.
std::vector<const HostPlacement*> host_placements(const ModelConfig& config, const HostPolicies& policies,
                                                  const std::vector<Device>& instances, int workers, Device device);
// For work that all of these instances share, such as loading weights: their cores, and memory of their nodes in turns.
std::optional<HostPlacement> joined(const std::vector<const HostPlacement*>& placements);
// Whether a group says which GPUs it is for.
bool names_gpus(const ModelConfig& config);
void keep_first_device(std::vector<Device>& instances);

// Throws Error{kFailedPrecondition} where more than a share of the GPU's memory is in use: `limits` has "GPU:SHARE".
// Throws kInvalidArgument for another text, wherever the device is.
void check_load_limits(const std::vector<std::string>& limits, Device device);

// The stream for one worker's work on its device; null on the host.
std::unique_ptr<DeviceStream> make_worker_stream(Device device);

}  // namespace tensord::server
