#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <mutex>
#include <vector>

namespace tensord::server {

// Processor time, memory and files of this process, under the names that Prometheus's own libraries use.
std::vector<prometheus::MetricFamily> process_families();

// Load and memory of the machine, under Triton's names. Thread-safe.
class MachineCollector {
 public:
  std::vector<prometheus::MetricFamily> families();

 private:
  std::mutex mutex_;
  uint64_t busy_ticks_ = 0, all_ticks_ = 0;  // by mutex_; when it was asked last
  double utilization_ = 0;                   // by mutex_; between the last two times
};

}  // namespace tensord::server
