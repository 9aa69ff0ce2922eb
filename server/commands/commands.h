#pragma once

#include <stdexcept>
#include <string>

// The subcommands of `tensord`, one file each. Each function adds its subcommand to `app`; if the subcommand was given,
// its callback runs it and stores the process's exit code. main prints an uncaught Error as one line and exits with
// kExitFailed.

namespace CLI {
class App;
}

namespace tensord::server {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;        // usage error
constexpr int kExitUnreachable = 3;  // the server is unreachable or timed out

// Thrown by a command to exit with a specific exit code.
class CommandError : public std::runtime_error {
 public:
  CommandError(int exit_code, const std::string& message) : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

void add_run_command(CLI::App& app, int* exit_code);
void add_convert_command(CLI::App& app, int* exit_code);
void add_inspect_command(CLI::App& app, int* exit_code);
void add_check_command(CLI::App& app, int* exit_code);
void add_bench_command(CLI::App& app, int* exit_code);
void add_ops_command(CLI::App& app, int* exit_code);
void add_devices_command(CLI::App& app, int* exit_code);
void add_launch_command(CLI::App& app, int* exit_code);
// Only in builds with TENSORD_SERVER.
void add_config_command(CLI::App& app, int* exit_code);
void add_quantize_command(CLI::App& app, int* exit_code);
void add_serve_command(CLI::App& app, int* exit_code);
void add_infer_command(CLI::App& app, int* exit_code);
void add_train_command(CLI::App& app, int* exit_code);
void add_jobs_command(CLI::App& app, int* exit_code);
void add_fetch_command(CLI::App& app, int* exit_code);
void add_health_command(CLI::App& app, int* exit_code);
void add_training_rank_command(CLI::App& app, int* exit_code);
void add_models_commands(CLI::App& app, int* exit_code);  // models, load, unload

}  // namespace tensord::server
