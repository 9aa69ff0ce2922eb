#include "server/executor/model/instance_placement.h"

#include <algorithm>
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

std::vector<Device> place_instances(const ModelConfig& config, Device otherwise) {
  std::vector<Device> out;
  for (const InstanceGroupConfig& group : config.instance_groups) {
    const PlacedGroup placed = place_group(group, otherwise);
    const auto count = static_cast<size_t>(group.count);
    const size_t places = placed.is_on_gpus() ? placed.gpus.size() : 1;
    check(out.size() + count * places <= kMaxInstances, "instance_group: more than ", kMaxInstances, " instances");
    for (size_t i = 0; i < places; ++i) {
      const Device device = placed.is_on_gpus() ? Device{kCUDA, static_cast<int8_t>(placed.gpus[i])} : placed.device;
      out.insert(out.end(), count, device);
    }
  }
  return out;
}

namespace {

// Work of requests goes before that of training, whose streams have priority 0.
constexpr int kServingPriority = -1;

}  // namespace

std::unique_ptr<DeviceStream> make_worker_stream(Device device) {
  if (device.is_host()) return nullptr;
  if (device.kind == kCUDA) return cuda::make_stream(device.index, kServingPriority);
  return device_runtime(device).make_stream(device.index);
}

}  // namespace tensord::server
