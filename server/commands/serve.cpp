#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/nearest.h"
#include "core/base/parallel.h"
#include "core/base/printable.h"
#include "core/base/thread.h"
#include "core/jit/importers/foreign_weights.h"
#include "server/commands/commands.h"
#include "server/commands/option_sources.h"
#include "server/commands/serve_notify.h"
#include "server/config/log_sink.h"
#include "server/config/options.h"
#include "server/config/pbtxt/model_config_text.h"
#include "server/daemon/daemon.h"
#include "server/executor/model/generation_options.h"
#include "server/executor/model/image_options.h"
#include "server/executor/model/torchscript_model.h"
#ifdef TENSORD_IMAGES
#include "server/images/image_model.h"
#endif
#include "server/repository/folder/folder_changes.h"
#include "server/repository/folder/layout.h"
#include "server/transport/access/access.h"
#include "server/transport/grpc/grpc_log.h"

namespace tensord::server {
namespace {

// Part of the exit timeout that is reserved for cancelled requests to end and threads to join.
constexpr int64_t kMaxCancelGraceMs = 1000;

// Blocks the stop signals in this thread and in all threads it starts; sigwait() receives them.
sigset_t block_stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  // With a terminal, SIGHUP means that the terminal was closed; without one, it asks for a reload.
  if (isatty(STDIN_FILENO) == 0) sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Ends the process when shutdown exceeds its timeout: a running kernel cannot be interrupted, and its request was
// already answered as cancelled.
class ExitTimer {
 public:
  explicit ExitTimer(int64_t timeout_ms) : thread_("exit-timer", [this, timeout_ms] { wait(timeout_ms); }) {}
  ~ExitTimer() {
    {
      const MutexLock lock(mutex_);
      is_done_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void wait(int64_t timeout_ms) {
    MutexLock lock(mutex_);
    if (changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                          [this]() TENSORD_REQUIRES(mutex_) { return is_done_; }))
      return;
    log(LogLevel::kWarning, "exit timeout is over, some requests were not finished");
    _exit(0);
  }

  Mutex mutex_;
  CondVar changed_;
  bool is_done_ = false;
  Thread thread_;  // declared last: it uses the other members
};

// Without SIGPIPE and SIGXFSZ, writing to a closed pipe or beyond a file-size limit is an error of that write instead
// of the end of the daemon. SIGUSR1 and SIGUSR2 have no meaning here and would end it too.
void ignore_signals() {
  for (const int number : {SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2}) signal(number, SIG_IGN);
}

// Captures, traces, jobs and checkpoints contain clients' data, so only the daemon's user may read them.
void keep_files_private() { umask(umask(0) | 077); }

void warn_of_readers(const ServerOptions& options) {
  const std::pair<const char*, std::string> secrets[] = {{"--access-tokens", options.network.access_tokens},
                                                         {"--join-token-file", options.join.token_file},
                                                         {"--join-key", options.join.key},
                                                         {"--grpc-server-key", options.network.server_key}};
  for (const auto& [flag, path] : secrets) {
    struct stat status {};
    if (path.empty() || stat(path.c_str(), &status) != 0 || (status.st_mode & (S_IROTH | S_IWOTH)) == 0) continue;
    log(LogLevel::kWarning, "a secret can be read by other users of this machine", {{"flag", flag}, {"file", path}});
  }
}

// Warns about a small address-space limit: below it, threads and libraries abort at arbitrary allocations.
void check_address_space() {
  // Measured: 1.45 GB with 22 threads on two cores, of which 1 GB is thread stacks and heaps.
  const rlim_t needed = (rlim_t{3} << 29) + (rlim_t{32} << 20) * static_cast<rlim_t>(available_cores());
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= needed) return;
  fail(ErrorCode::kResourceExhausted, "the process may map ", limit.rlim_cur,
       " bytes of memory (ulimit -v), and needs ", needed, " at least");
}

void tune_malloc() {
  // Keeps large blocks in the heap instead of mapping and unmapping them for each message. The top padding also keeps
  // the 64 MB heaps of threads, which glibc unmaps when they are empty unless less than the padding would remain.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
}

// Returns after the delay or at the next stop signal.
void wait_before_stop(sigset_t signals, int delay_secs) {
  if (delay_secs == 0) return;
  sigdelset(&signals, SIGHUP);
  log(LogLevel::kInfo, "stopping soon", {{"delay_seconds", delay_secs}});
  const timespec delay{.tv_sec = delay_secs, .tv_nsec = 0};
  sigtimedwait(&signals, nullptr, &delay);
}

void reload(Daemon& daemon) {
  notify_service_manager(kServiceReloading);
  daemon.reload();
  notify_service_manager(kServiceReady);
}

void check_repositories(const RepositoryOptions& options) {
  for (const std::string& root : options.model_repositories) {
    try {
      repository_folder(root);
    } catch (const Error& error) {
      // Names what lies beside it, which clients must not see later.
      std::error_code ignored;
      const bool is_there = std::filesystem::exists(root, ignored);
      throw Error(error.code(), error.what() + (is_there ? std::string() : nearest_file(root)));
    }
  }
  check_models_to_load(options.load_models, list_models(options.model_repositories));
}

// Validates options and repository as `serve` would, without listening: prints one line per model and returns whether
// all of them can be served, as far as that shows without loading their files, by their first bytes.
bool check_setup(const ServerOptions& options) {
  validate(options);
  check_engine_options(options.engine);
  AccessPolicy::make(options.network);  // reads the file of tokens
  check_repositories(options.repository);
  bool is_good = true;
  for (const ModelLayout& model : scan_repositories(options.repository.model_repositories)) {
    const auto say = [&](const std::string& place, const std::string& text) {
      std::cout << to_printable(concat(place, ": ", text)) << "\n";
    };
    if (!model.error.empty()) say(model.name, model.error);
    is_good = is_good && model.error.empty();
    for (const std::string& warning : model.warnings) say(model.name, concat("warning: ", warning));
    for (const ModelLayout::Version& version : model.versions) {
      const bool has_file = version.error.empty() && !model.config.is_ensemble();
      const std::string error = has_file ? jit::why_no_model(version.file.string()) : version.error;
      say(concat(model.name, "/", version.number), error.empty() ? "ok" : error);
      is_good = is_good && error.empty();
    }
  }
  return is_good;
}

std::unique_ptr<const Model> load_served_model(const ModelFiles& files, const ModelConfig& config,
                                               const EngineOptions& defaults) {
#ifdef TENSORD_IMAGES
  return load_image_model(files, config, defaults);
#else
  if (image_input_options(config)) {
    fail(ErrorCode::kUnimplemented,
         "parameters image_…: this tensord is built without image decoders (TENSORD_IMAGES)");
  }
  return load_torchscript_model(files, config, defaults);
#endif
}

void serve(const ServerOptions& options, const std::vector<std::string>& warnings) {
  ignore_signals();
  check_address_space();
  validate(options);
  check_engine_options(options.engine);
  tune_malloc();
  install_log_sink(options.log);  // before the umask: log collectors read its file
  keep_files_private();
  log_grpc_messages();
  log_triton_options(options.triton);
  for (const std::string& warning : warnings) log(LogLevel::kWarning, "environment", {{"warning", warning}});
  check_repositories(options.repository);  // before it listens
  warn_of_readers(options);
  const sigset_t signals = block_stop_signals();
  auto daemon = std::make_unique<Daemon>(
      options,
      [&options](const ModelFiles& files, const ModelConfig& config) {
        return load_served_model(files, config, options.engine);
      },
      TENSORD_VERSION);

  // A signal during a long load ends the process at once, because no request is in flight yet.
  std::atomic<bool> is_loading{true};
  int signal = 0;
  Thread waiter("signals", [&] {
    while (sigwait(&signals, &signal) == 0 && signal == SIGHUP) {
      if (!is_loading) reload(*daemon);
    }
    if (is_loading) _exit(0);
  });
  try {
    daemon->load();
  } catch (...) {
    is_loading = false;
    pthread_kill(waiter.native_handle(), SIGTERM);  // NOLINT(bugprone-bad-signal-to-kill-thread): it waits for it
    waiter.join();
    throw;
  }
  is_loading = false;
  notify_service_manager(kServiceReady);
  waiter.join();

  notify_service_manager(kServiceStopping);
  daemon->announce_stop();
  wait_before_stop(signals, options.exit_delay_secs);
  const int64_t timeout_ms = int64_t{options.exit_timeout_secs} * 1000;
  log(LogLevel::kInfo, "stopping", {{"signal", strsignal(signal)}, {"timeout_seconds", options.exit_timeout_secs}});
  const ExitTimer timer(timeout_ms);
  daemon->stop(timeout_ms - std::min(kMaxCancelGraceMs, timeout_ms / 4));
  log(LogLevel::kInfo, "stopped");
  // Every request is answered; running destructors would only take time.
  _exit(0);
}

// scripts/command_pages.py parses this text in the same way as options.
std::string parameters_help() {
  constexpr size_t kTextColumn = 30;
  std::vector<ModelParameter> parameters = model_parameters();
  const std::vector<ModelParameter> of_generation = generation_parameters();
  parameters.insert(parameters.end(), of_generation.begin(), of_generation.end());
  const std::vector<ModelParameter> of_images = image_parameters();
  parameters.insert(parameters.end(), of_images.begin(), of_images.end());
  std::string out = "Parameters of config.pbtxt:";
  for (const ModelParameter& parameter : parameters) {
    const size_t width = parameter.key.size() + 2;
    out +=
        concat("\n  ", parameter.key, std::string(width < kTextColumn ? kTextColumn - width : 1, ' '), parameter.text);
    if (!parameter.flag.empty()) out += concat("; for all models: ", parameter.flag);
  }
  return out;
}

}  // namespace

void add_serve_command(CLI::App& app, int* exit_code) {
  static ServerOptions options;
  CLI::App* command = app.add_subcommand("serve", "Serve the models of a repository over gRPC");
  add_options(*command, options);
  static bool is_check = false;
  command->add_flag("--check", is_check,
                    "Only check the options and the repository, with each config.pbtxt; exit code 1 if a model is "
                    "invalid. `tensord check MODEL` checks a model's file");
  command->footer(parameters_help);
  command->callback([exit_code, command] {
    const std::vector<std::string> warnings = unknown_variables(*command);
    if (is_check) {
      for (const std::string& warning : warnings) std::cerr << "tensord: warning: " << to_printable(warning) << "\n";
      *exit_code = check_setup(options) ? 0 : kExitFailed;
      return;
    }
    *exit_code = 0;
    serve(options, warnings);
  });
}

}  // namespace tensord::server
