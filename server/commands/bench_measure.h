#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/jit/runtime/module.h"
#include "core/jit/runtime/profile.h"
#include "core/tensor/allocator.h"
#include "server/commands/machine_peak.h"
#include "server/commands/model_options.h"

namespace tensord::server {

struct BenchOptions {
  ModelOptions model;
  std::string method = "forward";
  std::vector<std::string> inputs;
  std::vector<std::string> arguments_paths;
  int64_t batch = 0;       // 0: as given by the inputs
  int64_t iterations = 0;  // cycles; 0: as many as fit in `seconds`
  int64_t warmup = -1;     // cycles; -1: a tenth of `seconds`
  double seconds = 3;
  std::string trace_path;
  std::string compare;  // reference precision; empty: no comparison
  bool json = false;
  bool latency_only = false;
  bool all_ops = false;
};

// Argument sets. A cycle runs the model once on each of them.
using ArgumentSets = std::vector<std::vector<ops::Value>>;

struct BenchResult {
  double load_ms = 0;
  double first_ms = 0;
  std::vector<double> latencies_ms;  // of every run, sorted
  std::vector<double> cycles_ms;     // mean latency of each cycle, sorted
  // CPU time of all threads per cycle. With one thread it is more reliable than wall time on a busy machine.
  std::vector<double> cycles_cpu_ms;
  double total_seconds = 0;
  int threads = 1;
  // Profile of a cycle of `profiled_runs` runs made after the measurement; empty with latency_only.
  jit::Profile profile;
  int64_t profiled_runs = 0;
  MachinePeak peak;
  size_t arena_bytes = 0;
  size_t packed_bytes = 0;  // weights that operators repacked
  jit::PlanStats plans;
  AllocatorStats memory;

  double runs_per_second() const { return static_cast<double>(latencies_ms.size()) / total_seconds; }
};

// REQUIRES: `sorted` is ascending and not empty.
double percentile(const std::vector<double>& sorted, double fraction);
// Builds the arguments that the options describe. Throws Error{kInvalidArgument} if any is missing.
ArgumentSets make_arguments(const BenchOptions& options, const jit::Module& module, const jit::Method& method);
// Loads the model, warms up, measures, and profiles. Throws Error.
BenchResult measure(const BenchOptions& options);

}  // namespace tensord::server
