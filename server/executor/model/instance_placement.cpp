#include "server/executor/model/instance_placement.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <numeric>

#include "core/base/error.h"
#include "core/tensor/cuda/cuda_runtime.h"
#include "core/tensor/cuda/plugin.h"
#include "core/tensor/cuda/runtime.h"

namespace tensord::server {
namespace {

constexpr size_t kMaxInstances = 1024;

}  // namespace

PlacedGroup place_group(const InstanceGroupConfig& group, Device otherwise) {
  using Kind = InstanceGroupConfig::Kind;
  if (group.kind == Kind::kCpu) return {};
  if (group.kind == Kind::kModel) return {otherwise, {}};
  const int count = cuda::device_count();
  const auto is_missing = [count](int gpu) { return gpu >= count; };
  if (group.kind == Kind::kAuto && (count == 0 || std::ranges::any_of(group.gpus, is_missing))) return {};
  if (count == 0) {
    fail(ErrorCode::kFailedPrecondition, "instance group '", group.name,
         "' has kind KIND_GPU but no GPUs are available: ", cuda::why_no_devices());
  }
  PlacedGroup out{{}, group.gpus};
  if (out.gpus.empty()) {
    out.gpus.resize(static_cast<size_t>(count));
    std::iota(out.gpus.begin(), out.gpus.end(), 0);
  }
  for (const int gpu : out.gpus) {
    check(!is_missing(gpu), "instance group '", group.name, "' specifies gpu ", gpu, ", but there are only ", count);
  }
  return out;
}

namespace {

// Calls fn(group, device) for each device of each group, in order.
template <class Fn>
void for_each_place(const ModelConfig& config, Device otherwise, const Fn& fn) {
  for (const InstanceGroupConfig& group : config.instance_groups) {
    const PlacedGroup placed = place_group(group, otherwise);
    if (!placed.is_on_gpus()) fn(group, placed.device);
    for (const int gpu : placed.gpus) fn(group, Device{kCUDA, static_cast<int8_t>(gpu)});
  }
}

}  // namespace

std::vector<Device> place_instances(const ModelConfig& config, Device otherwise) {
  std::vector<Device> out;
  for_each_place(config, otherwise, [&](const InstanceGroupConfig& group, Device device) {
    const auto count = static_cast<size_t>(group.count);
    check(out.size() + count <= kMaxInstances, "instance_group: more than ", kMaxInstances, " instances");
    out.insert(out.end(), count, device);
  });
  return out;
}

namespace {

const HostPlacement* policy_for(const HostPolicies& policies, const std::string& named, Device device) {
  const auto found = policies.find(!named.empty()     ? named
                                   : device.is_host() ? "cpu"
                                                      : concat("gpu_", static_cast<int>(device.index)));
  return found == policies.end() ? nullptr : &found->second;
}

}  // namespace

std::vector<const HostPlacement*> host_placements(const ModelConfig& config, const HostPolicies& policies,
                                                  const std::vector<Device>& instances, int workers, Device device) {
  if (policies.empty()) return {};
  if (instances.empty()) {
    const std::string named = config.instance_groups.empty() ? "" : config.instance_groups.front().host_policy;
    return std::vector<const HostPlacement*>(static_cast<size_t>(workers), policy_for(policies, named, device));
  }
  const bool has_one_device =
      std::ranges::all_of(instances, [first = instances.front()](Device other) { return other == first; });
  std::vector<const HostPlacement*> out;
  for_each_place(config, device, [&](const InstanceGroupConfig& group, Device own) {
    if (has_one_device && own != instances.front()) return;  // see keep_first_device
    out.insert(out.end(), static_cast<size_t>(group.count), policy_for(policies, group.host_policy, own));
  });
  return out;
}

std::optional<HostPlacement> joined(const std::vector<const HostPlacement*>& placements) {
  HostPlacement out;
  const auto merge = [](std::vector<int>& all, const std::vector<int>& more) {
    std::vector<int> both;
    std::ranges::set_union(all, more, std::back_inserter(both));
    all = std::move(both);
  };
  bool is_everywhere = placements.empty(), has_any_core = false, has_any_memory = false;
  for (const HostPlacement* one : placements) {
    if (!one) {
      is_everywhere = true;
      continue;
    }
    merge(out.cores, one->cores);
    merge(out.nodes, one->nodes);
    has_any_core = has_any_core || one->cores.empty();
    has_any_memory = has_any_memory || one->nodes.empty();
  }
  if (is_everywhere) return std::nullopt;
  if (has_any_core) out.cores.clear();
  if (has_any_memory) out.nodes.clear();
  return out;
}

bool names_gpus(const ModelConfig& config) {
  return std::ranges::any_of(config.instance_groups, [](const auto& group) { return !group.gpus.empty(); });
}

void keep_first_device(std::vector<Device>& instances) {
  std::erase_if(instances, [first = instances.front()](Device other) { return other != first; });
}

namespace {

struct LoadLimit {
  int gpu = 0;
  double share = 0;
};

LoadLimit parse_load_limit(const std::string& text) {
  LoadLimit out;
  const size_t colon = std::min(text.find(':'), text.size());
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [gpu_end, gpu_error] = std::from_chars(begin, begin + colon, out.gpu);
  const auto [end_of_share, error] = std::from_chars(std::min(begin + colon + 1, end), end, out.share);
  const bool is_read =
      gpu_error == std::errc() && gpu_end == begin + colon && error == std::errc() && end_of_share == end;
  check(is_read && out.gpu >= 0 && out.share >= 0 && out.share <= 1,
        "--model-load-gpu-limit must be GPU:SHARE with a share from 0 to 1, got '", text, "'");
  return out;
}

}  // namespace

void check_load_limits(const std::vector<std::string>& limits, Device device) {
  for (const std::string& text : limits) {
    const LoadLimit limit = parse_load_limit(text);
    if (device.kind != kCUDA || device.index != limit.gpu) continue;
    uint64_t free_bytes = 0, total_bytes = 0;
    cuda::check_cuda(cuda::api().memory_info(device.index, &free_bytes, &total_bytes), "memory of the device");
    if (static_cast<double>(total_bytes - free_bytes) > limit.share * static_cast<double>(total_bytes)) {
      fail(ErrorCode::kFailedPrecondition, "memory limit set for GPU ", limit.gpu,
           " has exceeded, model loading is rejected.");
    }
  }
}

namespace {

// The priority of requests, which run before training; the streams of training have priority 0.
constexpr int kServingPriority = -1;

}  // namespace

std::unique_ptr<DeviceStream> make_worker_stream(Device device) {
  if (device.is_host()) return nullptr;
  if (device.kind == kCUDA) return cuda::make_stream(device.index, kServingPriority);
  return device_runtime(device).make_stream(device.index);
}

}  // namespace tensord::server
