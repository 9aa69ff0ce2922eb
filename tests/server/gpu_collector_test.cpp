#include "server/metrics/gpu_collector.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace tensord::server::gpu_collector_test {
namespace {

// The values of all series by "name gpu_uuid". tests/CMakeLists.txt substitutes fake_nvml for the driver's library.
std::map<std::string, double> values(const GpuCollector& gpus, GpuCollector::Names names) {
  std::map<std::string, double> out;
  for (const auto& family : gpus.families(names)) {
    for (const auto& metric : family.metric) {
      const double value = family.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value;
      out[family.name + " " + metric.label.back().value] = value;
    }
  }
  return out;
}

TEST(GpuCollector, TellsWhatTheDriverTells) {
  const GpuCollector gpus;
  const std::map<std::string, double> found = values(gpus, GpuCollector::Names::kOwn);
  const double gigabyte = 1 << 30;
  const std::map<std::string, double> wanted = {{"tensord_gpu_utilization_ratio GPU-fake-0", 0.25},
                                                {"tensord_gpu_utilization_ratio GPU-fake-1", 0.75},
                                                {"tensord_gpu_memory_total_bytes GPU-fake-0", 16 * gigabyte},
                                                {"tensord_gpu_memory_total_bytes GPU-fake-1", 16 * gigabyte},
                                                {"tensord_gpu_memory_used_bytes GPU-fake-0", gigabyte},
                                                {"tensord_gpu_memory_used_bytes GPU-fake-1", 2 * gigabyte},
                                                {"tensord_gpu_power_watts GPU-fake-0", 120.5},
                                                {"tensord_gpu_power_limit_watts GPU-fake-0", 300},
                                                {"tensord_gpu_energy_joules_total GPU-fake-0", 7.5}};
  EXPECT_EQ(found, wanted) << "what the second GPU does not tell is left out";
  const auto families = gpus.families(GpuCollector::Names::kOwn);
  const auto& label = families.at(0).metric.at(0).label.at(0);
  EXPECT_EQ(label.name + "=" + label.value, "gpu=0");
}

TEST(GpuCollector, HasTritonsNames) {
  const GpuCollector gpus;
  const std::map<std::string, double> found = values(gpus, GpuCollector::Names::kTriton);
  for (const char* name : {"nv_gpu_utilization", "nv_gpu_memory_total_bytes", "nv_gpu_memory_used_bytes",
                           "nv_gpu_power_usage", "nv_gpu_power_limit", "nv_energy_consumption"}) {
    EXPECT_TRUE(found.contains(std::string(name) + " GPU-fake-0")) << name;
  }
}

}  // namespace
}  // namespace tensord::server::gpu_collector_test
