#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <vector>

#include "core/base/mutex.h"

namespace tensord::server {

struct ProcessUsage {
  double cpu_seconds = 0;  // of all threads
  uint64_t resident_bytes = 0;
  uint64_t file_bytes = 0;  // of them: mapped files, such as the program and weights that are used in place
  uint64_t virtual_bytes = 0;
  int64_t threads = 0;
};
ProcessUsage process_usage();

// CPU time, memory and open files of this process, under the names that Prometheus's client libraries use.
std::vector<prometheus::MetricFamily> process_families();

// Utilization and memory of the machine, under Triton's names. Thread-safe.
class MachineCollector {
 public:
  std::vector<prometheus::MetricFamily> families();

 private:
  Mutex mutex_;
  uint64_t busy_ticks_ TENSORD_GUARDED_BY(mutex_) = 0, all_ticks_ TENSORD_GUARDED_BY(mutex_) = 0;  // at the last scrape
  double utilization_ TENSORD_GUARDED_BY(mutex_) = 0;  // between the last two scrapes
};

}  // namespace tensord::server
