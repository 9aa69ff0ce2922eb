#pragma once

#include <prometheus/metric_family.h>

#include <memory>
#include <mutex>
#include <vector>

namespace tensord::server {

// Collects utilization, memory and power of the machine's NVIDIA GPUs through NVML, which is loaded on the first
// scrape. There are no families without a driver. Thread-safe.
class GpuCollector {
 public:
  GpuCollector();
  ~GpuCollector();
  GpuCollector(const GpuCollector&) = delete;
  GpuCollector& operator=(const GpuCollector&) = delete;

  enum class Names { kOwn, kTriton };
  // Values that a GPU does not report are left out.
  std::vector<prometheus::MetricFamily> families(Names names) const;

 private:
  class Driver;
  const Driver& driver() const;
  mutable std::once_flag once_;
  mutable std::unique_ptr<const Driver> driver_;  // loaded once
};

}  // namespace tensord::server
