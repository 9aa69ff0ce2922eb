#include "server/commands/launch_workers.h"

#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "core/base/error.h"
#include "core/distributed/launch/environment.h"

namespace tensord::server {
namespace {

using Clock = std::chrono::steady_clock;
using distributed::ChildProcess;

constexpr size_t kLastLines = 20;

std::string with_values(std::string text, const std::vector<std::pair<std::string, std::string>>& values) {
  for (const auto& [name, value] : values) {
    for (size_t at; (at = text.find(name)) != std::string::npos;) text.replace(at, name.size(), value);
  }
  return text;
}

std::vector<std::string> environment_of(const LaunchOptions& options, int local_rank, int restart,
                                        const LaunchPlace& place) {
  const int world = place.world_size, rank = place.first_rank + local_rank;
  std::vector<std::string> out;
  const auto set = [&out](const char* name, const auto& value) { out.push_back(concat(name, "=", value)); };
  set("RANK", rank), set("WORLD_SIZE", world);
  set("LOCAL_RANK", local_rank), set("LOCAL_WORLD_SIZE", options.workers);
  set("GROUP_RANK", options.node_rank), set("GROUP_WORLD_SIZE", options.nodes);
  set("ROLE_RANK", rank), set("ROLE_WORLD_SIZE", world), set("ROLE_NAME", options.role);
  set("MASTER_ADDR", place.master_address), set("MASTER_PORT", place.master_port);
  set("TORCHELASTIC_RESTART_COUNT", restart), set("TORCHELASTIC_MAX_RESTARTS", options.max_restarts);
  set("TORCHELASTIC_RUN_ID", options.run_id);
  set(distributed::kLaunchSecret, options.secret);
  // The workers' rank 0 serves their store.
  set("TORCHELASTIC_USE_AGENT_STORE", "False");
  set("TORCH_NCCL_ASYNC_ERROR_HANDLING", 1);
  if (options.workers > 1 && !std::getenv("OMP_NUM_THREADS")) set("OMP_NUM_THREADS", 1);
  return out;
}

}  // namespace

struct Workers::Worker {
  Worker(int rank, const ChildProcess::Options& options) : rank(rank), process(options) {}
  const int rank;
  ChildProcess process;
  std::string prefix;
  bool is_shown = true;
  bool has_output = true, has_errors = true;  // whether the pipes are still open
  bool has_ended = false;
  distributed::LineCutter output, errors;
  std::ofstream output_file, errors_file;
  std::deque<std::string> last_lines;
};

Workers::Workers(const LaunchOptions& options, int restart, const LaunchPlace& place) : options_(options) {
  for (int local = 0; local < options.workers; ++local) {
    const int rank = place.first_rank + local;
    auto worker = std::make_unique<Worker>(
        rank, ChildProcess::Options{.arguments = options.program,
                                    .environment = environment_of(options, local, restart, place)});
    worker->prefix = with_values(
        options.prefix,
        {{"${role_name}", options.role}, {"${local_rank}", std::to_string(local)}, {"${rank}", std::to_string(rank)}});
    worker->is_shown = options.shown_ranks.empty() || std::find(options.shown_ranks.begin(), options.shown_ranks.end(),
                                                                local) != options.shown_ranks.end();
    if (!options.log_dir.empty()) {
      const auto folder = std::filesystem::path(options.log_dir) / concat("attempt_", restart) / std::to_string(rank);
      std::error_code error;
      std::filesystem::create_directories(folder, error);
      worker->output_file.open(folder / "stdout.log");
      worker->errors_file.open(folder / "stderr.log");
      check(worker->output_file && worker->errors_file, "--log-dir: ", folder.string(), " cannot be written");
    }
    workers_.push_back(std::move(worker));
  }
}

Workers::~Workers() = default;

void Workers::print(Worker& worker, bool is_error, std::string_view line) {
  std::ofstream& file = is_error ? worker.errors_file : worker.output_file;
  if (file.is_open()) file << line << "\n" << std::flush;
  if (is_error) {
    worker.last_lines.emplace_back(line);
    if (worker.last_lines.size() > kLastLines) worker.last_lines.pop_front();
  }
  if (!worker.is_shown) return;
  // One call per line, so that lines of several launchers do not interleave.
  const std::string text = concat(worker.prefix, line, "\n");
  std::FILE* const to = is_error ? stderr : stdout;
  std::fwrite(text.data(), 1, text.size(), to);
  std::fflush(to);
}

void Workers::drain(Worker& worker) {
  for (const bool is_error : {false, true}) {
    bool& is_open = is_error ? worker.has_errors : worker.has_output;
    if (!is_open) continue;
    auto& lines = is_error ? worker.errors : worker.output;
    const auto show = [&](std::string_view line) { print(worker, is_error, line); };
    std::string bytes;
    is_open = ChildProcess::read_some(is_error ? worker.process.errors() : worker.process.output(), bytes);
    lines.add(bytes, show);
    if (!is_open || worker.has_ended) lines.finish(show);
  }
}

void Workers::look_at_ends() {
  for (const auto& worker : workers_) {
    if (worker->has_ended || !worker->process.status()) continue;
    worker->has_ended = true;
    drain(*worker);
    const int status = *worker->process.status();
    if (status == 0 || failure_) continue;
    failure_ = {worker->rank, worker->process.pid(), distributed::describe_status(status), worker->last_lines};
  }
}

void Workers::watch(std::chrono::milliseconds timeout, int wake) {
  std::vector<pollfd> fds{{.fd = wake, .events = POLLIN, .revents = 0}};
  for (const auto& worker : workers_) {
    if (worker->has_output && !worker->has_ended) fds.push_back({worker->process.output(), POLLIN, 0});
    if (worker->has_errors && !worker->has_ended) fds.push_back({worker->process.errors(), POLLIN, 0});
  }
  poll(fds.data(), fds.size(), static_cast<int>(timeout.count()));
  for (const auto& worker : workers_) {
    if (!worker->has_ended) drain(*worker);
  }
  look_at_ends();
}

bool Workers::all_ended() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const auto& worker) { return worker->has_ended; });
}

void Workers::send_signal(int signal) const {
  for (const auto& worker : workers_) worker->process.send_signal(signal);
}

void Workers::stop(int signal) {
  send_signal(signal);
  const auto deadline = Clock::now() + options_.shutdown_timeout;
  while (!all_ended() && Clock::now() < deadline) watch(options_.monitor_interval, -1);
  if (!all_ended()) send_signal(SIGKILL);
  while (!all_ended()) watch(options_.monitor_interval, -1);
}

}  // namespace tensord::server
