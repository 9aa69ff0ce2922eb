#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <vector>

#include "core/base/mutex.h"

namespace tensord::server {

// Processor time, memory and files of this process, under the names that Prometheus's own libraries use.
std::vector<prometheus::MetricFamily> process_families();

// Load and memory of the machine, under Triton's names. Thread-safe.
class MachineCollector {
 public:
  std::vector<prometheus::MetricFamily> families();

 private:
  Mutex mutex_;
  uint64_t busy_ticks_ TENSORD_GUARDED_BY(mutex_) = 0, all_ticks_
                                                       TENSORD_GUARDED_BY(mutex_) = 0;  // when it was asked last
  double utilization_ TENSORD_GUARDED_BY(mutex_) = 0;                                   // between the last two times
};

}  // namespace tensord::server
