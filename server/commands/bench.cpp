#include <CLI/CLI.hpp>

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/jit/archive/torch_file.h"
#include "core/jit/runtime/module.h"
#include "core/tensor/caching_allocator.h"
#include "server/commands/bench_inputs.h"
#include "server/commands/commands.h"
#include "server/commands/model_options.h"

namespace tensord::server {

namespace {

struct BenchOptions {
  ModelOptions model;
  std::string method = "forward";
  std::vector<std::string> inputs;
  std::string arguments_path;
  int64_t batch = 0;
  int64_t iterations = 0;
  double seconds = 3;
  bool json = false;
  bool by_op = false;
};

struct BenchResult {
  double load_ms = 0;
  double first_ms = 0;
  std::vector<double> latencies_ms;  // sorted
  double total_seconds = 0;
  jit::Profile profile;
  AllocatorStats memory;
};

double since_ms(int64_t start_ns) { return static_cast<double>(Clock::system().now_ns() - start_ns) / 1e6; }

double percentile(const std::vector<double>& sorted, double fraction) {
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(fraction * static_cast<double>(sorted.size())))];
}

std::vector<ops::Value> make_arguments(const BenchOptions& options, const jit::Method& method) {
  if (!options.arguments_path.empty()) {
    const ops::Value value = jit::load_torch_file(options.arguments_path);
    check(value.is_tuple() || value.is_list(), options.arguments_path, ": expected a tuple of arguments");
    return value.is_tuple() ? value.to_tuple()->items : value.to_list()->items;
  }
  size_t required = 0;
  for (const ops::Argument& argument : method.schema().arguments) required += !argument.default_value.has_value();
  check(options.inputs.size() >= required, "give the arguments of ", method.schema().str(),
        " with --args A.pt, or one --input SHAPE[:DTYPE] each, such as --input 1,3,224,224:float32");
  std::vector<ops::Value> arguments;
  for (const std::string& text : options.inputs) arguments.emplace_back(make_input(text, options.batch));
  return arguments;
}

// Runs until the count or the time is reached; a tenth of it before that, unmeasured.
BenchResult measure(const BenchOptions& options) {
  BenchResult result;
  int64_t start_ns = Clock::system().now_ns();
  const std::shared_ptr<jit::Module> module = load_model(options.model, load_options(options.model));
  const jit::Method& method = module->method(options.method);
  result.load_ms = since_ms(start_ns);
  const std::vector<ops::Value> arguments = make_arguments(options, method);
  const std::unique_ptr<jit::Frame> frame = jit::make_frame();
  start_ns = Clock::system().now_ns();
  method.run(*frame, arguments);
  result.first_ms = since_ms(start_ns);

  const auto is_done = [&](int64_t count, int64_t begin_ns, double share) {
    if (options.iterations > 0) return static_cast<double>(count) >= share * static_cast<double>(options.iterations);
    return since_ms(begin_ns) >= share * options.seconds * 1e3;
  };
  start_ns = Clock::system().now_ns();
  for (int64_t i = 0; !is_done(i, start_ns, 0.1); ++i) method.run(*frame, arguments);
  start_ns = Clock::system().now_ns();
  for (int64_t i = 0; i == 0 || !is_done(i, start_ns, 1); ++i) {
    const int64_t begin_ns = Clock::system().now_ns();
    method.run(*frame, arguments);
    result.latencies_ms.push_back(since_ms(begin_ns));
  }
  result.total_seconds = since_ms(start_ns) / 1e3;
  if (options.by_op) {
    frame->set_profile(&result.profile);
    const int64_t count = std::clamp<int64_t>(static_cast<int64_t>(result.latencies_ms.size()), 1, 50);
    for (int64_t i = 0; i < count; ++i) method.run(*frame, arguments);
    for (auto& [name, entry] : result.profile.entries) {
      entry.calls /= static_cast<uint64_t>(count);
      entry.time_ns /= count;
    }
  }
  std::sort(result.latencies_ms.begin(), result.latencies_ms.end());
  result.memory = cpu_allocator().stats();
  return result;
}

std::vector<std::pair<std::string, jit::Profile::Entry>> by_time(const jit::Profile& profile) {
  std::vector<std::pair<std::string, jit::Profile::Entry>> out(profile.entries.begin(), profile.entries.end());
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second.time_ns > b.second.time_ns; });
  return out;
}

void print_json(const BenchOptions& options, const BenchResult& result) {
  const double rate = static_cast<double>(result.latencies_ms.size()) / result.total_seconds;
  std::cout << "{\"load_ms\": " << result.load_ms << ", \"first_ms\": " << result.first_ms
            << ", \"runs\": " << result.latencies_ms.size()
            << ", \"median_ms\": " << percentile(result.latencies_ms, 0.5)
            << ", \"p90_ms\": " << percentile(result.latencies_ms, 0.9)
            << ", \"p99_ms\": " << percentile(result.latencies_ms, 0.99)
            << ", \"min_ms\": " << result.latencies_ms.front() << ", \"runs_per_second\": " << rate;
  if (options.batch > 0) std::cout << ", \"items_per_second\": " << rate * static_cast<double>(options.batch);
  std::cout << ", \"live_bytes\": " << result.memory.live_bytes
            << ", \"peak_live_bytes\": " << result.memory.peak_live_bytes << ", \"ops\": [";
  const char* separator = "";
  for (const auto& [name, entry] : by_time(result.profile)) {
    std::cout << separator << "{\"name\": \"" << name << "\", \"calls\": " << entry.calls
              << ", \"ms\": " << static_cast<double>(entry.time_ns) / 1e6 << "}";
    separator = ", ";
  }
  std::cout << "]}" << std::endl;
}

void print_text(const BenchOptions& options, const BenchResult& result) {
  const double rate = static_cast<double>(result.latencies_ms.size()) / result.total_seconds;
  std::cout << std::fixed << std::setprecision(3) << "load        " << result.load_ms << " ms\n"
            << "first run   " << result.first_ms << " ms\n"
            << "median      " << percentile(result.latencies_ms, 0.5) << " ms of " << result.latencies_ms.size()
            << " runs\n"
            << "p90         " << percentile(result.latencies_ms, 0.9) << " ms\n"
            << "p99         " << percentile(result.latencies_ms, 0.99) << " ms\n"
            << "throughput  " << rate << " runs/s";
  if (options.batch > 0) std::cout << ", " << rate * static_cast<double>(options.batch) << " items/s";
  std::cout << "\nmemory      " << result.memory.live_bytes << " bytes live, " << result.memory.peak_live_bytes
            << " bytes at peak\n";
  if (!options.by_op) return;
  std::cout << "time of one run by operator\n";
  for (const auto& [name, entry] : by_time(result.profile)) {
    std::cout << "  " << std::left << std::setw(40) << name << std::right << std::setw(6) << entry.calls << " calls"
              << std::setw(12) << static_cast<double>(entry.time_ns) / 1e6 << " ms\n";
  }
}

}  // namespace

void add_bench_command(CLI::App& app, int* exit_code) {
  CLI::App* command =
      app.add_subcommand("bench", "Measure a model in this process: latency, throughput, time by operator");
  auto options = std::make_shared<BenchOptions>();
  add_model_options(*command, options->model);
  command->add_option("--method", options->method, "The method to call")->capture_default_str();
  auto* inputs = command->add_option("--input", options->inputs, "SHAPE[:DTYPE] of one argument, such as 1,3,224,224")
                     ->allow_extra_args(false);
  command->add_option("--args", options->arguments_path, "Tuple of arguments written by torch.save")->excludes(inputs);
  command->add_option("--batch", options->batch, "First size of every --input")->check(CLI::PositiveNumber);
  command->add_option("--iterations", options->iterations, "Runs to measure")->check(CLI::PositiveNumber);
  command->add_option("--seconds", options->seconds, "Time to measure when no count is given")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->add_flag("--by-op", options->by_op, "Add the time by operator");
  command->callback([options, exit_code] {
    const BenchResult result = measure(*options);
    options->json ? print_json(*options, result) : print_text(*options, result);
    *exit_code = 0;
  });
}

}  // namespace tensord::server
