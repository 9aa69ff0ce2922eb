#include "server/commands/client/server_bench_command.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/base/error.h"
#include "server/commands/bench_measure.h"
#include "server/commands/client/connection.h"
#include "server/commands/client/infer_inputs.h"
#include "server/commands/client/json_line.h"
#include "server/commands/client/progress.h"
#include "server/commands/client/server_bench.h"
#include "server/commands/client/table.h"
#include "server/commands/commands.h"

namespace tensord::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kDefaultWarmup = 10;
constexpr int kMaxClients = 4096;
constexpr double kMaxSeconds = 3600;  // bounds memory, because every latency is kept
constexpr int kExitInterrupted = 130;

struct ServerBenchOptions {
  ConnectionOptions connection;
  std::string version;
  std::vector<int> clients = {1};
  bool shared_memory = false;
};

std::atomic<bool> g_interrupted{false};  // SIGINT ends the measurement, so that shared memory is unregistered

client::Request bench_request(client::Client& server, const ServerBenchOptions& own, const BenchOptions& options) {
  ModelSignature signature(server, options.model.model, own.version, options.batch);
  client::Request request{.model = options.model.model, .inputs = {}};
  request.version = own.version;
  request.inputs = read_inputs(options.inputs, /*random_rest=*/options.inputs.empty(), signature);
  for (const client::Input& input : request.inputs) {
    const std::vector<int64_t>& shape = input.tensor.shape();
    if (options.batch > 0 && (shape.empty() || shape[0] != options.batch)) {
      throw client::InvalidArgumentError(
          concat("--batch ", options.batch, ": input '", input.name, "' has ", shape.empty() ? 0 : shape[0], " rows"));
    }
  }
  return request;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void print_result_json(const LoadResult& result, const BenchOptions& options) {
  const std::vector<double>& latencies = result.latencies_ms;
  Json json = {{"model", options.model.model}, {"clients", result.clients},
               {"seconds", result.seconds},    {"requests", latencies.size()},
               {"errors", result.errors},      {"requests_per_second", result.requests_per_second()}};
  if (options.batch > 0) json["rows_per_second"] = result.requests_per_second() * static_cast<double>(options.batch);
  if (!latencies.empty()) {
    json["mean_ms"] = mean(latencies);
    json["median_ms"] = percentile(latencies, 0.5);
    json["p90_ms"] = percentile(latencies, 0.9);
    json["p99_ms"] = percentile(latencies, 0.99);
  }
  if (result.server) {
    json["server"] = {{"requests", result.server->requests},
                      {"cache_hits", result.server->cache_hits},
                      {"queue_ms", result.server->queue_ms},
                      {"compute_input_ms", result.server->compute_input_ms},
                      {"compute_infer_ms", result.server->compute_infer_ms},
                      {"compute_output_ms", result.server->compute_output_ms},
                      {"rows_per_run", result.server->rows_per_run}};
  }
  print_json_line(json);
}

void print_table(const std::vector<LoadResult>& results, int64_t batch) {
  std::vector<std::string> header = {"CLIENTS", "REQUESTS/S"};
  if (batch > 0) header.emplace_back("ROWS/S");
  for (const char* name : {"MEDIAN MS", "P90 MS", "P99 MS", "ERRORS", "QUEUE MS", "COMPUTE MS", "ROWS/RUN"}) {
    header.emplace_back(name);
  }
  Table table(header);
  for (const LoadResult& result : results) {
    const auto latency = [&](double part) {
      return result.latencies_ms.empty() ? "-" : fixed_text(percentile(result.latencies_ms, part), 3);
    };
    const auto of_server = [&](auto value, int decimals) {
      return result.server ? fixed_text(value(*result.server), decimals) : "-";
    };
    std::vector<std::string> row = {std::to_string(result.clients), fixed_text(result.requests_per_second(), 1)};
    if (batch > 0) row.push_back(fixed_text(result.requests_per_second() * static_cast<double>(batch), 1));
    row.insert(row.end(), {latency(0.5), latency(0.9), latency(0.99), std::to_string(result.errors)});
    row.push_back(of_server([](const ServerTimes& times) { return times.queue_ms; }, 3));
    row.push_back(of_server(
        [](const ServerTimes& times) {
          return times.compute_input_ms + times.compute_infer_ms + times.compute_output_ms;
        },
        3));
    row.push_back(of_server([](const ServerTimes& times) { return times.rows_per_run; }, 1));
    table.add(std::move(row));
  }
  table.print(std::cout);
}

LoadResult measure_with(client::Client& server, const client::Request& request, const client::Result& sample,
                        const ServerBenchOptions& own, const BenchOptions& options, int clients) {
  std::unique_ptr<SharedTensors> shared;
  if (own.shared_memory) shared = std::make_unique<SharedTensors>(server, request, sample, clients);
  ProgressLine line(!options.json);
  return measure_load(
      server, [&](int client) { return shared ? shared->request_of(client) : request; }, clients, options.seconds,
      g_interrupted,
      [&](double passed) {
        line.show(concat(clients, clients == 1 ? " client  " : " clients  ", bar_text(passed / options.seconds), " ",
                         fixed_text(passed, 1), " s"));
      });
}

int run(const ServerBenchOptions& own, const BenchOptions& options) {
  check(options.seconds <= kMaxSeconds, "--seconds: at most ", kMaxSeconds, " with --address");
  client::Client server = connect(own.connection);
  const client::Request request = bench_request(server, own, options);
  client::Result sample = server.infer(request);
  const int64_t warmup = options.warmup < 0 ? kDefaultWarmup : options.warmup;
  for (int64_t i = 1; i < warmup; ++i) sample = server.infer(request);
  struct sigaction on_interrupt {};
  on_interrupt.sa_handler = [](int) { g_interrupted = true; };
  on_interrupt.sa_flags = static_cast<int>(SA_RESETHAND);  // a second SIGINT ends the process
  sigaction(SIGINT, &on_interrupt, nullptr);
  std::vector<LoadResult> results;
  for (const int clients : own.clients) {
    results.push_back(measure_with(server, request, sample, own, options, clients));
    if (options.json) print_result_json(results.back(), options);
    if (g_interrupted) break;
  }
  if (!options.json) print_table(results, options.batch);
  int exit_code = g_interrupted ? kExitInterrupted : 0;
  for (const LoadResult& result : results) {
    if (result.errors == 0) continue;
    std::cerr << "tensord: " << result.errors << " requests of " << result.clients
              << " clients failed, the first with: " << printable(result.first_error) << std::endl;
    exit_code = kExitFailed;
  }
  return exit_code;
}

}  // namespace

std::function<std::optional<int>()> add_server_bench(CLI::App& command, const BenchOptions& options) {
  const auto own = std::make_shared<ServerBenchOptions>();
  const auto options_of = [&] { return command.get_options([](const CLI::Option*) { return true; }); };
  static const std::vector<std::string> kOfBoth = {"MODEL", "input", "batch", "seconds", "warmup", "json", "help"};
  const std::vector<CLI::Option*> others = options_of();
  add_connection_options(command, own->connection);
  CLI::Option* address = command.get_option("--address");
  command.add_option("--version", own->version, "A number, or a label");
  command.add_option("--clients", own->clients, "Requests at the same time; several numbers with commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, kMaxClients))
      ->capture_default_str();
  command.add_flag("--shared-memory", own->shared_memory,
                   "Pass inputs and outputs in shared memory (serve --allow-client-shm true)");
  std::vector<CLI::Option*> of_server, of_engine;
  for (CLI::Option* option : options_of()) {
    const auto is_in = [&](const auto& list, const auto& what) {
      return std::find(list.begin(), list.end(), what) != list.end();
    };
    if (!is_in(others, option)) {
      of_server.push_back(option->group("A served model"));
    } else if (!is_in(kOfBoth, option->get_single_name())) {
      of_engine.push_back(option);
    }
  }
  command.get_option("MODEL")->description(
      "The model's file: TorchScript, .pt2, ONNX, or model.py; with --address, the name of a served model");
  address->description("Measure a model of the gRPC server at this address, instead of an archive");
  return [=, &options]() -> std::optional<int> {
    const bool is_of_server = address->count() > 0;
    // Checked by hand, because CLI11's excludes() and needs() would fill the help with long lists.
    for (const CLI::Option* option : is_of_server ? of_engine : of_server) {
      if (option->count() == 0) continue;
      throw CommandError(kExitUsage, concat(option->get_name(), is_of_server ? ": not with" : ": needs", " --address"));
    }
    if (!is_of_server) return std::nullopt;
    return run_client([&] { return run(*own, options); });
  };
}

}  // namespace tensord::server
