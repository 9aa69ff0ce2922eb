#pragma once

// The subcommands of `tensord`, one file each. Each function adds its subcommand to `app`
// and, when the subcommand was given, runs it and stores the process's exit code. An Error
// that leaves a command is printed by main as one line, and the exit code is 1.

namespace CLI {
class App;
}

namespace tensord::server {

void add_run_command(CLI::App& app, int* exit_code);
void add_inspect_command(CLI::App& app, int* exit_code);
void add_bench_command(CLI::App& app, int* exit_code);
void add_ops_command(CLI::App& app, int* exit_code);
// Only in builds with TENSORD_SERVER.
void add_serve_command(CLI::App& app, int* exit_code);
void add_train_command(CLI::App& app, int* exit_code);
void add_jobs_command(CLI::App& app, int* exit_code);
void add_health_command(CLI::App& app);
void add_models_commands(CLI::App& app);  // models, load, unload

}  // namespace tensord::server
