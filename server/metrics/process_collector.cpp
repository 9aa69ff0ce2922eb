#include "server/metrics/process_collector.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "core/base/memory_limit.h"
#include "core/base/mutex.h"
#include "core/base/parallel.h"
#include "server/metrics/metric_families.h"

namespace tensord::server {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily single(const char* name, const char* help, MetricType type, double value) {
  MetricFamily out = make_family(name, help, type);
  add_sample(out, {}, value);
  return out;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// Parses lines such as "MemTotal:  16307304 kB" into bytes.
std::map<std::string, double> memory_of_machine() {
  std::ifstream file("/proc/meminfo");
  std::map<std::string, double> out;
  std::string name, unit;
  for (double kilobytes = 0; file >> name >> kilobytes;) {
    out[name] = kilobytes * 1024;
    std::getline(file, unit);
  }
  return out;
}

int64_t thread_count() {
  std::ifstream file("/proc/self/status");
  int64_t threads = 0;
  for (std::string name; file >> name;) {
    if (name == "Threads:" && file >> threads) break;
    std::getline(file, name);
  }
  return threads;
}

}  // namespace

ProcessUsage process_usage() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  uint64_t virtual_pages = 0, resident_pages = 0, file_pages = 0;
  std::ifstream("/proc/self/statm") >> virtual_pages >> resident_pages >> file_pages;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return {.cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime),
          .resident_bytes = resident_pages * page,
          .file_bytes = file_pages * page,
          .virtual_bytes = virtual_pages * page,
          .threads = thread_count()};
}

std::vector<MetricFamily> process_families() {
  const ProcessUsage usage = process_usage();
  double files = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end; it.increment(error)) {
    ++files;
  }
  rlimit max_files{};
  getrlimit(RLIMIT_NOFILE, &max_files);
  return {
      single("process_cpu_seconds_total", "Processor time of this process", MetricType::Counter, usage.cpu_seconds),
      single("process_resident_memory_bytes", "Memory of this process that is in use", MetricType::Gauge,
             static_cast<double>(usage.resident_bytes)),
      single("process_virtual_memory_bytes", "Address space of this process", MetricType::Gauge,
             static_cast<double>(usage.virtual_bytes)),
      single("process_open_fds", "Open files of this process", MetricType::Gauge, files),
      single("process_max_fds", "Most files that this process may open", MetricType::Gauge,
             static_cast<double>(max_files.rlim_cur)),
      single("tensord_memory_limit_bytes", "Memory that this process may have: of the machine, or its cgroup's limit",
             MetricType::Gauge, static_cast<double>(memory_limit())),
      single("tensord_cpu_limit_cores", "Cores that this process may use: affinity and cgroup quota", MetricType::Gauge,
             available_cores())};
}

std::vector<MetricFamily> MachineCollector::families() {
  std::map<std::string, double> memory = memory_of_machine();
  std::ifstream stat("/proc/stat");
  std::string cpu;
  stat >> cpu;
  uint64_t all = 0, idle = 0;
  // user nice system idle iowait irq softirq steal
  for (int field = 0; field < 8; ++field) {
    uint64_t ticks = 0;
    stat >> ticks;
    all += ticks;
    if (field == 3 || field == 4) idle += ticks;
  }
  const MutexLock lock(mutex_);
  const uint64_t busy = all - idle;
  if (all > all_ticks_) {
    utilization_ = static_cast<double>(busy - busy_ticks_) / static_cast<double>(all - all_ticks_);
    busy_ticks_ = busy;
    all_ticks_ = all;
  }
  return {single("nv_cpu_utilization", "Share of the processors in use since the last time, 0 to 1", MetricType::Gauge,
                 utilization_),
          single("nv_cpu_memory_total_bytes", "Memory of the machine", MetricType::Gauge, memory["MemTotal:"]),
          single("nv_cpu_memory_used_bytes", "Memory of the machine that is in use", MetricType::Gauge,
                 memory["MemTotal:"] - memory["MemAvailable:"])};
}

}  // namespace tensord::server
