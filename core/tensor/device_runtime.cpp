#include "core/tensor/device_runtime.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <unordered_set>

#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/tensor/cpu_runtime.h"
#include "core/tensor/cuda/plugin.h"
#include "core/tensor/memory/accounts.h"

namespace tensord {
namespace {

// What is registered before main may be registered before this file's own objects are made.
std::array<std::atomic<DeviceRuntime*>, kDeviceKinds>& runtimes() {
  static std::array<std::atomic<DeviceRuntime*>, kDeviceKinds> table{&cpu_runtime()};
  return table;
}

DeviceRuntime* find_runtime(DeviceKind kind) {
  const auto index = static_cast<size_t>(kind);
  return index < runtimes().size() ? runtimes()[index].load(std::memory_order_acquire) : nullptr;
}

// One a device, made at its first use and never destroyed, as storages may outlive main.
class DeviceAllocators {
 public:
  CachingAllocator& of(Device device, DeviceRuntime& runtime) {
    auto& slot = allocators_[static_cast<size_t>(device.kind)][static_cast<size_t>(device.index)];
    if (CachingAllocator* const made = slot.load(std::memory_order_acquire)) return *made;
    const MutexLock lock(mutex_);
    if (!slot.load(std::memory_order_relaxed)) {
      slot.store(new CachingAllocator(runtime.make_allocator(device.index)), std::memory_order_release);
    }
    return *slot.load(std::memory_order_relaxed);
  }
  void append_used(std::vector<std::pair<Device, CachingAllocator*>>& out) const {
    for (size_t kind = 0; kind < allocators_.size(); ++kind) {
      for (size_t index = 0; index < kMaxDevices; ++index) {
        if (CachingAllocator* const made = allocators_[kind][index].load(std::memory_order_acquire))
          out.emplace_back(Device{static_cast<DeviceKind>(kind), static_cast<int8_t>(index)}, made);
      }
    }
  }

 private:
  static constexpr size_t kMaxDevices = 128;  // Device::index
  Mutex mutex_;                               // of making one
  std::array<std::array<std::atomic<CachingAllocator*>, kMaxDevices>, kDeviceKinds> allocators_{};
};

DeviceAllocators& device_allocators() {
  static auto* const allocators = new DeviceAllocators;
  return *allocators;
}

// Those that were not closed.
struct OpenStreams {
  Mutex mutex;
  std::unordered_set<const DeviceStream*> all TENSORD_GUARDED_BY(mutex);
};
OpenStreams& open_streams() {
  static auto* const streams = new OpenStreams;
  return *streams;
}

}  // namespace

DeviceStream::DeviceStream(Device device) : device_(device) {
  const MutexLock lock(open_streams().mutex);
  open_streams().all.insert(this);
}

void DeviceStream::close() {
  const MutexLock lock(open_streams().mutex);
  open_streams().all.erase(this);
}

bool is_open(const DeviceStream* stream) {
  const MutexLock lock(open_streams().mutex);
  return open_streams().all.contains(stream);
}

bool record_if_open(DeviceEvent& event, DeviceStream* stream) {
  const MutexLock lock(open_streams().mutex);
  if (!open_streams().all.contains(stream)) return false;
  event.record(*stream);
  return true;
}

void register_device_runtime(DeviceKind kind, DeviceRuntime& runtime) {
  runtimes().at(static_cast<size_t>(kind)).store(&runtime, std::memory_order_release);
}

DeviceRuntime& device_runtime(Device device) {
  if (device.is_host()) return cpu_runtime();
  DeviceRuntime* const runtime = find_runtime(device.kind);
  if (!runtime || device.index < 0 || device.index >= runtime->count()) {
    const bool is_none = device.kind == kCUDA && (!runtime || runtime->count() == 0);
    fail(ErrorCode::kUnimplemented, "device ", to_string(device), " is not available in this build or on this machine",
         is_none ? ": " + cuda::why_no_devices() : "");
  }
  return *runtime;
}

DeviceStream& current_stream(Device device) {
  DeviceStream* const own = execution_context().stream;
  return own && own->device() == device ? *own : device_runtime(device).default_stream(device.index);
}

CachingAllocator& allocator_for(Device device) {
  if (device.is_host()) return cpu_allocator();
  return device_allocators().of(device, device_runtime(device));
}

std::vector<std::pair<Device, CachingAllocator*>> used_allocators() {
  std::vector<std::pair<Device, CachingAllocator*>> out{{Device{}, &cpu_allocator()}};
  device_allocators().append_used(out);
  return out;
}

uint64_t bytes_of_owner(OwnerId owner) {
  uint64_t sum = 0;
  for (const auto& [device, allocator] : used_allocators()) sum += allocator->live_bytes_of(owner);
  return sum;
}

std::vector<OwnerBytes> bytes_of_owners() {
  std::vector<OwnerBytes> out;
  for (const auto& [device, allocator] : used_allocators()) {
    for (const OwnerBytes& bytes : allocator->owners()) {
      const auto known = std::ranges::find(out, bytes.name, &OwnerBytes::name);
      if (known == out.end()) {
        out.push_back(bytes);
      } else {
        known->live_bytes += bytes.live_bytes;
        known->peak_bytes += bytes.peak_bytes;
      }
    }
  }
  return out;
}

void trim_allocators() {
  for (const auto& [device, allocator] : used_allocators()) allocator->trim();
}

}  // namespace tensord
