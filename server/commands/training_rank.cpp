#include <CLI/CLI.hpp>

#include "server/commands/commands.h"
#include "server/training/ranks/rank_process.h"

namespace tensord::server {

// Only the daemon runs this command, so the help does not list it.
void add_training_rank_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(kRankCommand)->group("");
  command->callback([exit_code] { *exit_code = run_rank_process(); });
}

}  // namespace tensord::server
