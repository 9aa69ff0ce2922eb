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
  int64_t batch = 0;       // 0: as the inputs say
  int64_t iterations = 0;  // cycles; 0: as many as `seconds` allow
  int64_t warmup = -1;     // cycles; -1: for a tenth of `seconds`
  double seconds = 3;
  std::string trace_path;
  std::string compare;  // a precision; empty: none
  bool json = false;
  bool latency_only = false;
  bool all_ops = false;
};

// One run for each; a pass over all of them is a cycle.
using ArgumentSets = std::vector<std::vector<ops::Value>>;

struct BenchResult {
  double load_ms = 0;
  double first_ms = 0;
  std::vector<double> latencies_ms;  // sorted, of every run
  std::vector<double> cycles_ms;     // sorted, mean of the runs of a cycle
  // The same in CPU time of all threads: on a busy machine, with one thread, nearer to the truth.
  std::vector<double> cycles_cpu_ms;
  double total_seconds = 0;
  int threads = 1;
  // Of a cycle of `profiled_runs` runs, made after the measurement; 0 with latency_only.
  jit::Profile profile;
  int64_t profiled_runs = 0;
  MachinePeak peak;
  size_t arena_bytes = 0;
  size_t packed_bytes = 0;  // what the calls made of their constants
  jit::PlanStats plans;
  AllocatorStats memory;

  double runs_per_second() const { return static_cast<double>(latencies_ms.size()) / total_seconds; }
};

// Of values in ascending order, at least one.
double percentile(const std::vector<double>& sorted, double fraction);
// The arguments that the options name. Throws Error{kInvalidArgument} when they do not suffice.
ArgumentSets make_arguments(const BenchOptions& options, const jit::Method& method);
// Loads the model, warms up, measures, and profiles. Throws Error.
BenchResult measure(const BenchOptions& options);

}  // namespace tensord::server
