#include <CLI/CLI.hpp>

#include <functional>
#include <iostream>
#include <memory>
#include <optional>

#include "core/jit/runtime/load_flags.h"
#include "server/commands/bench_compare.h"
#include "server/commands/bench_measure.h"
#include "server/commands/bench_report.h"
#ifdef TENSORD_SERVER
#include "server/commands/client/server_bench_command.h"
#endif
#include "server/commands/commands.h"
#include "server/commands/input_text.h"

namespace tensord::server {

namespace {

void run_bench(const BenchOptions& options) {
  if (!options.compare.empty()) jit::parse_precision(options.compare);  // fails before the measurement, not after it
  const BenchResult result = measure(options);
  std::vector<OutputDifference> differences;
  if (!options.compare.empty()) differences = compare_precisions(options);
  if (!options.trace_path.empty()) write_trace(options.trace_path, options, result);
  options.json ? print_json(std::cout, options, result, differences)
               : print_text(std::cout, options, result, differences);
}

}  // namespace

void add_bench_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "bench", "Measure a model in this process, with speed, time by call and memory; or a served model");
  auto options = std::make_shared<BenchOptions>();
  add_model_options(*command, options->model);
  command->add_option("--method", options->method, "The method to call")->capture_default_str();
  auto* inputs = command->add_option("--input", options->inputs, kInputHelp)->allow_extra_args(false);
  command
      ->add_option("--args", options->arguments_paths,
                   "Tuple of arguments written by torch.save; may be repeated: runs use them in turn")
      ->allow_extra_args(false)
      ->excludes(inputs);
  command->add_option("--batch", options->batch, "First size of every --input")->check(CLI::PositiveNumber);
  command->add_option("--iterations", options->iterations, "Runs to measure, with each --args")
      ->check(CLI::PositiveNumber);
  command->add_option("--seconds", options->seconds, "Time to measure when no count is given")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--warmup", options->warmup, "Warm-up runs, with each --args; default: a tenth of --seconds")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--compare", options->compare,
                      "A precision: also run the model in it and print the difference of the outputs");
  auto* trace = command->add_option("--trace", options->trace_path,
                                    "Write a trace of a few runs for Perfetto, with a slice for each call");
  command->add_flag("--latency-only", options->latency_only, "Omit the machine's peak and the time by call")
      ->excludes(trace);
  command->add_flag("--json", options->json, "Print one JSON object");
  command->add_flag("--by-op", options->all_ops, "List all calls, not only the slowest");
  std::function<std::optional<int>()> of_server = [] { return std::nullopt; };
#ifdef TENSORD_SERVER
  of_server = add_server_bench(*command, *options);
#endif
  command->footer(
      "Examples:\n"
      "  tensord bench resnet50.pt --input 1,3,224,224 --threads 1        an archive, in this process\n"
      "  tensord bench resnet50.pt --args a.pt --precision bf16 --compare f32\n"
      "  tensord bench resnet50 --address 127.0.0.1:8001 --clients 1,8 --batch 4   a served model, from here\n"
      "  tensord bench bert --address 127.0.0.1:8001 --input ids=random:1,128:i64 --json");
  command->callback([options, of_server, exit_code] {
    if (const std::optional<int> code = of_server()) {
      *exit_code = *code;
    } else {
      run_bench(*options);
    }
  });
}

}  // namespace tensord::server
