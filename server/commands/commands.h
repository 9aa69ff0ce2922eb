#pragma once

#include <stdexcept>
#include <string>

// The subcommands of `tensord`, one file each. Each function adds its subcommand to `app`
// and, when the subcommand was given, runs it and stores the process's exit code. An Error
// that leaves a command is printed by main as one line, and the exit code is kExitFailed.

namespace CLI {
class App;
}

namespace tensord::server {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;        // the command line, or what it names, is wrong
constexpr int kExitUnreachable = 3;  // the server is not there, or did not answer in time

// What a command throws to end with an exit code of its own.
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
void add_launch_command(CLI::App& app, int* exit_code);
// Only in builds with TENSORD_SERVER.
void add_config_command(CLI::App& app, int* exit_code);
void add_serve_command(CLI::App& app, int* exit_code);
void add_infer_command(CLI::App& app, int* exit_code);
void add_train_command(CLI::App& app, int* exit_code);
void add_jobs_command(CLI::App& app, int* exit_code);
void add_health_command(CLI::App& app, int* exit_code);
void add_training_rank_command(CLI::App& app, int* exit_code);
void add_models_commands(CLI::App& app, int* exit_code);  // models, load, unload

}  // namespace tensord::server
