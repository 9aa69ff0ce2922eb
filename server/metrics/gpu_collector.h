#pragma once

#include <prometheus/metric_family.h>

#include <memory>
#include <mutex>
#include <vector>

namespace tensord::server {

// Load, memory and power of the machine's NVIDIA GPUs, asked of the driver's library (NVML), which is looked for when
// metrics are first read. Without a driver there are no families. Thread-safe.
class GpuCollector {
 public:
  GpuCollector();
  ~GpuCollector();
  GpuCollector(const GpuCollector&) = delete;
  GpuCollector& operator=(const GpuCollector&) = delete;

  enum class Names { kOwn, kTriton };
  // Values that a GPU does not tell are left out.
  std::vector<prometheus::MetricFamily> families(Names names) const;

 private:
  class Driver;
  const Driver& driver() const;
  mutable std::once_flag once_;
  mutable std::unique_ptr<const Driver> driver_;  // made once
};

}  // namespace tensord::server
