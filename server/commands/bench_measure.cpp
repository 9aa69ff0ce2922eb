#include "server/commands/bench_measure.h"

#include <time.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/jit/runtime/load_flags.h"
#include "core/tensor/device_runtime.h"
#include "core/tensor/memory/caching_allocator.h"
#include "server/commands/arguments_file.h"
#include "server/commands/engine_inputs.h"

namespace tensord::server {

namespace {

constexpr int64_t kMaxProfiledRuns = 50;
constexpr int64_t kTracedCycles = 3;

double since_ms(int64_t start_ns) { return static_cast<double>(Clock::system().now_ns() - start_ns) / 1e6; }

double process_cpu_ms() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

// Fresh tensor objects for each run, because a model may change the shape of its inputs in place.
std::vector<ops::Value> fresh_handles(const std::vector<ops::Value>& arguments) {
  std::vector<ops::Value> out = arguments;
  for (ops::Value& value : out) {
    if (!value.is_strided() || !value.to_tensor().defined()) continue;
    const Tensor& tensor = value.to_tensor();
    value = tensor.as_view(tensor.sizes(), tensor.strides(), tensor.offset());
  }
  return out;
}

// The device of the tensors: work is over when that is.
Device device_of(const ArgumentSets& sets) {
  for (const std::vector<ops::Value>& arguments : sets) {
    for (const ops::Value& value : arguments) {
      if (value.is_strided() && value.to_tensor().defined()) return value.to_tensor().device();
    }
  }
  return {};
}

// Runs each argument set once, appends the latencies and returns their mean.
double run_cycle(const jit::Method& method, jit::Frame& frame, const ArgumentSets& sets,
                 std::vector<double>& latencies_ms, const jit::RunOptions& options = {}) {
  const Device device = device_of(sets);
  double total_ms = 0;
  for (const std::vector<ops::Value>& arguments : sets) {
    const std::vector<ops::Value> given = fresh_handles(arguments);
    const int64_t begin_ns = Clock::system().now_ns();
    method.run(frame, given, options);
    synchronize(device);
    latencies_ms.push_back(since_ms(begin_ns));
    total_ms += latencies_ms.back();
  }
  return total_ms / static_cast<double>(sets.size());
}

void measure_latency(const BenchOptions& options, const jit::Method& method, jit::Frame& frame,
                     const ArgumentSets& sets, BenchResult& result) {
  std::vector<double> ignored;
  int64_t start_ns = Clock::system().now_ns();
  if (options.warmup >= 0) {
    for (int64_t i = 0; i < options.warmup; ++i) run_cycle(method, frame, sets, ignored);
  } else {
    do {
      run_cycle(method, frame, sets, ignored);
    } while (since_ms(start_ns) < options.seconds * 100);
  }
  start_ns = Clock::system().now_ns();
  do {
    const double cpu_ms = process_cpu_ms();
    result.cycles_ms.push_back(run_cycle(method, frame, sets, result.latencies_ms));
    result.cycles_cpu_ms.push_back((process_cpu_ms() - cpu_ms) / static_cast<double>(sets.size()));
  } while (options.iterations > 0 ? static_cast<int64_t>(result.cycles_ms.size()) < options.iterations
                                  : since_ms(start_ns) < options.seconds * 1e3);
  result.total_seconds = std::reduce(result.latencies_ms.begin(), result.latencies_ms.end()) / 1e3;
  std::sort(result.cycles_cpu_ms.begin(), result.cycles_cpu_ms.end());
  std::sort(result.cycles_ms.begin(), result.cycles_ms.end());
  std::sort(result.latencies_ms.begin(), result.latencies_ms.end());
}

// Takes the median of each call over the cycles, so that one disturbed cycle has no effect.
void measure_profile(const BenchOptions& options, const jit::Method& method, jit::Frame& frame,
                     const ArgumentSets& sets, BenchResult& result) {
  const auto set_count = static_cast<int64_t>(sets.size());
  const auto measured = static_cast<int64_t>(result.cycles_ms.size());
  int64_t cycles = std::clamp<int64_t>(kMaxProfiledRuns / set_count, 1, std::max<int64_t>(measured / 2, 1));
  const bool with_events = !options.trace_path.empty();
  if (with_events) cycles = std::min(cycles, kTracedCycles);
  std::map<std::string, std::vector<int64_t>> times_ns;
  std::vector<double> ignored;
  for (int64_t i = 0; i < cycles; ++i) {
    jit::Profile profile;
    profile.with_events = with_events;
    run_cycle(method, frame, sets, ignored, {.profile = &profile});
    for (const auto& [name, entry] : profile.entries) times_ns[name].push_back(entry.time_ns);
    result.profile.entries = std::move(profile.entries);
    result.profile.events.insert(result.profile.events.end(), profile.events.begin(), profile.events.end());
  }
  for (auto& [name, entry] : result.profile.entries) {
    std::vector<int64_t>& times = times_ns[name];
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    entry.time_ns = times[times.size() / 2];
  }
  result.profiled_runs = set_count;
}

}  // namespace

double percentile(const std::vector<double>& sorted, double fraction) {
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(fraction * static_cast<double>(sorted.size())))];
}

ArgumentSets make_arguments(const BenchOptions& options, const jit::Module& module, const jit::Method& method) {
  const Device device = parse_device(options.model.device);
  ArgumentSets sets;
  for (const std::string& path : options.arguments_paths) {
    sets.push_back(ops::to_device(read_arguments(path, method.schema()), device));
  }
  if (!sets.empty()) return sets;
  const auto is_needed = [](const ops::Argument& argument) { return !argument.default_value; };
  check(!options.inputs.empty() || std::ranges::none_of(method.schema().arguments, is_needed), "give the arguments of ",
        method.schema().str(),
        " with --args A.pt, or one --input SHAPE[:TYPE] each, such as --input 1,3,224,224:float32");
  sets.push_back(ops::to_device(
      read_call("--input", options.inputs, module, method, WholeNumber::kIsSize, options.batch), device));
  return sets;
}

BenchResult measure(const BenchOptions& options) {
  BenchResult result;
  CachingAllocator& allocator = allocator_for(parse_device(options.model.device));
  const uint64_t before_bytes = allocator.stats().live_bytes;
  int64_t start_ns = Clock::system().now_ns();
  const std::shared_ptr<jit::Module> module = load_model(options.model, load_options(options.model));
  const jit::Method& method = module->method(options.method);
  result.load_ms = since_ms(start_ns);
  result.threads = thread_budget();
  const uint64_t loaded_bytes = allocator.stats().live_bytes;
  const ArgumentSets sets = make_arguments(options, *module, method);
  const uint64_t argument_bytes = allocator.stats().live_bytes - loaded_bytes;
  const std::unique_ptr<jit::Frame> frame = jit::make_frame();
  start_ns = Clock::system().now_ns();
  method.run(*frame, fresh_handles(sets[0]));
  synchronize(device_of(sets));
  result.first_ms = since_ms(start_ns);

  measure_latency(options, method, *frame, sets, result);
  result.memory = allocator.stats();
  result.arena_bytes = frame->arena_bytes();
  result.plans = method.plan_stats();
  // On the CPU, weights stay in the file's mapping, so the remaining live memory is what the model packed.
  const uint64_t other_bytes = before_bytes + argument_bytes + result.arena_bytes;
  result.packed_bytes = result.memory.live_bytes - std::min(result.memory.live_bytes, other_bytes);
  if (options.latency_only) return result;
  measure_profile(options, method, *frame, sets, result);
  result.peak = measure_peak(jit::parse_precision(options.model.precision), result.threads);
  return result;
}

}  // namespace tensord::server
