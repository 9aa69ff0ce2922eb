#include <unistd.h>

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdlib>
#include <memory>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/distributed/hmac.h"
#include "core/distributed/launch/environment.h"
#include "core/tensor/device_runtime.h"
#include "server/commands/commands.h"
#include "server/commands/launch_workers.h"

namespace tensord::server {
namespace {

struct Flags {
  LaunchOptions options;
  std::string workers = "1", nodes = "1", rendezvous, backend = "static", address;
  int node_rank = -1, port = 0, join_timeout = 600, shutdown_timeout = 30;
  double monitor_interval = 0.1;
  bool is_standalone = false, is_module = false, is_no_python = false;
};

int number_in(const std::string& text, const char* flag, int min, int max) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(error == std::errc() && end == text.data() + text.size() && value >= min && value <= max, flag, ": '", text,
        "' is not a number from ", min, " to ", max);
  return value;
}

// Parses "2", or "2:2" as in torchrun.
int nodes_of(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return number_in(text, "--nnodes", 1, 1 << 16);
  const int min = number_in(text.substr(0, colon), "--nnodes", 1, 1 << 16);
  const int max = number_in(text.substr(colon + 1), "--nnodes", 1, 1 << 16);
  if (min != max) {
    fail(ErrorCode::kUnimplemented, "--nnodes: the number of nodes cannot change while the program runs, got ", text);
  }
  return max;
}

int workers_of(const std::string& text) {
  if (text == "auto" || text == "cpu") return available_cores();
  if (text == "gpu") {
    try {
      return device_runtime({kCUDA, 0}).count();
    } catch (const Error& error) {
      fail(ErrorCode::kUnimplemented, "--nproc-per-node: gpu: ", error.what());
    }
  }
  return number_in(text, "--nproc-per-node", 1, 4096);
}

// Parses "host:port", "host" or "[::1]:port".
void read_endpoint(const std::string& text, LaunchOptions& options) {
  const size_t colon = text.rfind(':');
  const bool has_port = colon != std::string::npos && text.find(']', colon) == std::string::npos &&
                        (text.front() == '[' || text.find(':') == colon);
  std::string host = text.substr(0, has_port ? colon : std::string::npos);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  check(!host.empty(), "--rdzv-endpoint: '", text, "' names no host");
  options.address = host;
  if (has_port) options.port = static_cast<uint16_t>(number_in(text.substr(colon + 1), "--rdzv-endpoint", 0, 65535));
}

// Kubeflow's PyTorchJob sets RANK and WORLD_SIZE of the pod. A worker process would have LOCAL_RANK too.
void read_pod(Flags& flags) {
  const auto get = [](const char* name) {
    const char* const text = std::getenv(name);
    return std::string(text ? text : "");
  };
  if (get("RANK").empty() || !get("LOCAL_RANK").empty()) return;
  const int rank = number_in(get("RANK"), "RANK", 0, 1 << 16);
  const int size = number_in(get("WORLD_SIZE").empty() ? "1" : get("WORLD_SIZE"), "WORLD_SIZE", 1, 1 << 16);
  check(flags.node_rank < 0 || flags.node_rank == rank, "--node-rank is ", flags.node_rank,
        ", but the environment says RANK=", rank);
  const int given = nodes_of(flags.nodes);
  check(given == 1 || given == size, "--nnodes is ", given, ", but the environment says WORLD_SIZE=", size);
  flags.node_rank = rank;
  flags.nodes = std::to_string(size);
  if (flags.address.empty()) flags.address = get("MASTER_ADDR");
  if (flags.port == 0 && !get("MASTER_PORT").empty()) {
    flags.port = number_in(get("MASTER_PORT"), "MASTER_PORT", 1, 65535);
  }
}

// Reads Slurm's variables, for one launcher per node: `srun --ntasks-per-node=1 tensord launch …`. Flags take
// precedence.
void read_slurm(Flags& flags) {
  const auto number = [](const char* name) {
    const char* const text = std::getenv(name);
    return text && *text ? number_in(text, name, 0, 1 << 30) : 0;
  };
  const int nodes = number("SLURM_STEP_NUM_NODES");
  const bool is_said =
      flags.nodes != "1" || flags.node_rank >= 0 || !flags.rendezvous.empty() || !flags.address.empty();
  if (is_said || flags.is_standalone || nodes < 2 || number("SLURM_STEP_NUM_TASKS") != nodes) return;
  flags.nodes = std::to_string(nodes);
  flags.node_rank = number("SLURM_NODEID");
  flags.address = distributed::first_slurm_node();
}

int run(Flags flags) {
  LaunchOptions& options = flags.options;
  check(flags.backend == "static" || flags.backend == "c10d", "--rdzv-backend: '", flags.backend,
        "' is not known; there are static and c10d");
  read_pod(flags);
  read_slurm(flags);
  options.workers = workers_of(flags.workers);
  options.nodes = flags.is_standalone ? 1 : nodes_of(flags.nodes);
  if (!flags.is_standalone) {
    if (!flags.address.empty()) options.address = flags.address;
    check(flags.port >= 0 && flags.port <= 65535, "--master-port: ", flags.port, " is not a port");
    options.port = static_cast<uint16_t>(flags.port);
    if (!flags.rendezvous.empty()) read_endpoint(flags.rendezvous, options);
  }
  // With torchrun's c10d backend nodes may agree on their ranks themselves; Kubeflow's elastic jobs need that.
  const bool finds_place = options.nodes > 1 && flags.node_rank < 0 && flags.backend == "c10d";
  options.node_rank = finds_place ? -1 : std::max(0, flags.node_rank);
  if (options.nodes > 1) {
    check(flags.node_rank >= 0 || finds_place, "--node-rank: which of the ", options.nodes, " nodes is this?");
    check(flags.node_rank < options.nodes, "--node-rank: ", flags.node_rank, " of ", options.nodes, " nodes");
    check(!flags.rendezvous.empty() || !flags.address.empty(),
          "--rdzv-endpoint: several nodes have to know where node 0 is");
    if (options.port == 0) options.port = 29500;
  }
  options.secret = distributed::launch_secret();
  check(options.nodes == 1 || !options.secret.empty(),
        "several nodes need a secret by which they know each other: set ", distributed::kLaunchSecret,
        " to the same text on each");
  if (options.secret.empty()) options.secret = distributed::hex_of(distributed::random_bytes(32));
  check(options.max_restarts >= 0, "--max-restarts: must not be below 0");
  check(flags.monitor_interval > 0 && flags.monitor_interval <= 60, "--monitor-interval: from 0 to 60 seconds");
  options.monitor_interval = std::chrono::milliseconds(std::max(1, static_cast<int>(flags.monitor_interval * 1000)));
  options.join_timeout = std::chrono::seconds(flags.join_timeout);
  options.shutdown_timeout = std::chrono::seconds(flags.shutdown_timeout);
  check(!options.program.empty(), "PROGRAM: what is to be run?");
  const bool is_script = options.program.front().ends_with(".py") && !flags.is_no_python;
  if (flags.is_module) options.program.insert(options.program.begin(), "-m");
  if (is_script || flags.is_module) options.program.insert(options.program.begin(), {"python3", "-u"});
  return launch(options);
}

}  // namespace

void add_launch_command(CLI::App& app, int* exit_code) {
  const auto flags = std::make_shared<Flags>();
  LaunchOptions& options = flags->options;
  CLI::App* command = app.add_subcommand("launch", "Run a program as several workers, as torchrun does");
  const auto add = [command](const std::string& names, const char* variable, auto& value, const std::string& text) {
    command->add_option(names, value, text)->envname(variable);
  };
  add("--nproc-per-node,--nproc,--nproc_per_node", "PET_NPROC_PER_NODE", flags->workers,
      "Workers of this node: a number, auto (one for each core), or gpu (one for each CUDA device); default 1");
  add("--nnodes", "PET_NNODES", flags->nodes, "Nodes; default 1");
  add("--node-rank,--node_rank", "PET_NODE_RANK", flags->node_rank, "Index of this node, from 0");
  add("--rdzv-endpoint,--rdzv,--rdzv_endpoint", "PET_RDZV_ENDPOINT", flags->rendezvous,
      "HOST:PORT of node 0, where the launchers connect; default port 29500");
  add("--rdzv-backend,--rdzv_backend", "PET_RDZV_BACKEND", flags->backend,
      "static, or c10d, which needs no --node-rank");
  add("--rdzv-id,--rdzv_id", "PET_RDZV_ID", options.run_id, "The name of the run, passed to workers");
  add("--master-addr,--master_addr", "PET_MASTER_ADDR", flags->address, "Host of node 0, instead of --rdzv-endpoint");
  add("--master-port,--master_port", "PET_MASTER_PORT", flags->port, "Port on that host; default: any free port");
  command->add_flag("--standalone", flags->is_standalone, "One node, ignoring the environment")
      ->envname("PET_STANDALONE");
  add("--max-restarts,--max_restarts", "PET_MAX_RESTARTS", options.max_restarts,
      "How often all workers are restarted after a failure; default 0");
  add("--monitor-interval,--monitor_interval", "PET_MONITOR_INTERVAL", flags->monitor_interval,
      "Seconds between checks of the workers; default 0.1");
  add("--shutdown-timeout,--shutdown_timeout", "PET_SHUTDOWN_TIMEOUT", flags->shutdown_timeout,
      "Seconds from SIGTERM to SIGKILL; default 30");
  add("--join-timeout", "PET_JOIN_TIMEOUT", flags->join_timeout, "Seconds that nodes wait for each other; default 600");
  add("--role", "PET_ROLE", options.role, "Role name of the workers; default: default");
  add("--log-dir,--log_dir", "PET_LOG_DIR", options.log_dir, "Folder that also receives the workers' output");
  command
      ->add_option("--local-ranks-filter,--local_ranks_filter", options.shown_ranks,
                   "Local ranks whose output is printed, such as 0,1; default all")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->envname("PET_LOCAL_RANKS_FILTER");
  add("--log-line-prefix-template,--log_line_prefix_template", "PET_LOG_LINE_PREFIX_TEMPLATE", options.prefix,
      "Prefix of output lines; default [${role_name}${rank}]:");
  command->add_flag("-m,--module", flags->is_module, "PROGRAM is a Python module")->envname("PET_MODULE");
  command->add_flag("--no-python,--no_python", flags->is_no_python, "Run a .py file directly, without python3")
      ->envname("PET_NO_PYTHON");
  command->prefix_command();
  command->footer(
      "Notes:\n"
      "  The program and its arguments follow the flags; a file that ends in .py is run by python3.\n"
      "  Workers get RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT and torchrun's other variables.\n"
      "  TENSORD_LAUNCH_SECRET is a shared secret of launchers and workers: set the same string on all nodes;\n"
      "  a single node generates one.\n"
      "  When a worker fails, all are stopped, and restarted while restarts are left.\n"
      "  Exit code 0: all workers ended with 0.\n"
      "Examples:\n"
      "  tensord launch --nproc 2 --max-restarts 3 ./train_line");
  command->callback([=] {
    flags->options.program = command->remaining();
    std::vector<std::string>& program = flags->options.program;
    if (!program.empty() && program.front() == "--") program.erase(program.begin());
    *exit_code = run(*flags);
  });
}

}  // namespace tensord::server
