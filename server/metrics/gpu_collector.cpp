#include "server/metrics/gpu_collector.h"

#include <dlfcn.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "core/tensor/cuda/plugin.h"
#include "core/tensor/cuda/runtime.h"
#include "core/tensor/memory/accounts.h"
#include "server/metrics/metric_families.h"

namespace tensord::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// The declarations this needs of nvml.h, which only CUDA's development packages have. NVML's ABI is stable: changed
// structures get new names.
using Device = void*;
struct Utilization {
  unsigned gpu_percent = 0, memory_percent = 0;
};
struct Memory {
  unsigned long long total = 0, free = 0, used = 0;
};
constexpr int kSuccess = 0;
constexpr unsigned kUuidSize = 96;

struct Sample {
  std::string index, uuid;
  std::optional<double> utilization, memory_total, memory_used, power_watts, power_limit_watts, energy_joules;
};

struct GpuSeries {
  const char* name;
  const char* triton_name;
  const char* help;
  MetricType type;
  std::optional<double> Sample::*value;
};

constexpr GpuSeries kGpuSeries[] = {
    {"tensord_gpu_utilization_ratio", "nv_gpu_utilization", "Share of the last second in which the GPU worked, 0 to 1",
     MetricType::Gauge, &Sample::utilization},
    {"tensord_gpu_memory_total_bytes", "nv_gpu_memory_total_bytes", "Memory of the GPU", MetricType::Gauge,
     &Sample::memory_total},
    {"tensord_gpu_memory_used_bytes", "nv_gpu_memory_used_bytes", "Memory of the GPU in use by all processes",
     MetricType::Gauge, &Sample::memory_used},
    {"tensord_gpu_power_watts", "nv_gpu_power_usage", "Power that the GPU takes, in watts", MetricType::Gauge,
     &Sample::power_watts},
    {"tensord_gpu_power_limit_watts", "nv_gpu_power_limit", "Power that the GPU may take, in watts", MetricType::Gauge,
     &Sample::power_limit_watts},
    {"tensord_gpu_energy_joules_total", "nv_energy_consumption", "Energy since the driver was loaded, in joules",
     MetricType::Counter, &Sample::energy_joules},
};

// What the CUDA runtime knows of GPUs in use, where NVML is missing: "cuda:0" in place of the UUID. Others would be
// given a context, which takes memory.
std::vector<Sample> runtime_samples() {
  std::vector<Sample> out;
  for (const auto& [device, allocator] : used_allocators()) {
    uint64_t free_bytes = 0, total_bytes = 0;
    if (device.kind != kCUDA ||
        cuda::api().memory_info(device.index, &free_bytes, &total_bytes) != cuda::Outcome::kDone) {
      continue;
    }
    Sample& sample = out.emplace_back();
    sample.index = std::to_string(device.index);
    sample.uuid = "cuda:" + sample.index;
    sample.memory_total = static_cast<double>(total_bytes);
    sample.memory_used = static_cast<double>(total_bytes - free_bytes);
  }
  return out;
}

}  // namespace

class GpuCollector::Driver {
 public:
  Driver() {
    library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library_) return;
    const auto init = function<int()>("nvmlInit_v2");
    is_there_ = init && init() == kSuccess;
  }
  ~Driver() {
    const auto shutdown = is_there_ ? function<int()>("nvmlShutdown") : nullptr;
    if (shutdown) shutdown();
    if (library_) dlclose(library_);
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  std::vector<Sample> samples() const {
    unsigned count = 0;
    if (!is_there_ || !get("nvmlDeviceGetCount_v2", &count)) return {};
    std::vector<Sample> out;
    for (unsigned index = 0; index < count; ++index) {
      Device device = nullptr;
      if (get("nvmlDeviceGetHandleByIndex_v2", index, &device)) out.push_back(sample(index, device));
    }
    return out;
  }

 private:
  template <typename Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

  // Calls a function of NVML if this driver has it.
  template <typename... Arguments>
  bool get(const char* name, Arguments... arguments) const {
    const auto call = function<int(Arguments...)>(name);
    return call && call(arguments...) == kSuccess;
  }

  Sample sample(unsigned index, Device device) const {
    Sample out;
    out.index = std::to_string(index);
    std::array<char, kUuidSize> uuid{};
    if (get("nvmlDeviceGetUUID", device, uuid.data(), kUuidSize)) out.uuid = uuid.data();
    Utilization use;
    if (get("nvmlDeviceGetUtilizationRates", device, &use)) out.utilization = use.gpu_percent / 100.0;
    Memory memory;
    if (get("nvmlDeviceGetMemoryInfo", device, &memory)) {
      out.memory_total = static_cast<double>(memory.total);
      out.memory_used = static_cast<double>(memory.used);
    }
    unsigned milliwatts = 0;
    if (get("nvmlDeviceGetPowerUsage", device, &milliwatts)) out.power_watts = milliwatts / 1000.0;
    if (get("nvmlDeviceGetEnforcedPowerLimit", device, &milliwatts)) out.power_limit_watts = milliwatts / 1000.0;
    unsigned long long millijoules = 0;
    if (get("nvmlDeviceGetTotalEnergyConsumption", device, &millijoules)) {
      out.energy_joules = static_cast<double>(millijoules) / 1000.0;
    }
    return out;
  }

  void* library_ = nullptr;
  bool is_there_ = false;
};

GpuCollector::GpuCollector() = default;
GpuCollector::~GpuCollector() = default;

const GpuCollector::Driver& GpuCollector::driver() const {
  std::call_once(once_, [this] { driver_ = std::make_unique<const Driver>(); });
  return *driver_;
}

std::vector<MetricFamily> GpuCollector::families(Names names) const {
  std::vector<MetricFamily> out;
  std::vector<Sample> samples = driver().samples();
  if (samples.empty()) samples = runtime_samples();
  for (const GpuSeries& series : kGpuSeries) {
    MetricFamily family =
        make_family(names == Names::kTriton ? series.triton_name : series.name, series.help, series.type);
    for (const Sample& sample : samples) {
      std::vector<ClientMetric::Label> labels{{"gpu_uuid", sample.uuid}};
      if (names == Names::kOwn) labels.insert(labels.begin(), {"gpu", sample.index});
      if (const auto& value = sample.*series.value) add_sample(family, std::move(labels), *value);
    }
    if (!family.metric.empty()) out.push_back(std::move(family));
  }
  return out;
}

}  // namespace tensord::server
