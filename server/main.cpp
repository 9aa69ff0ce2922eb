#include <CLI/CLI.hpp>

#include <algorithm>
#include <exception>
#include <iostream>
#include <string>

#include "core/base/cpu_isa.h"
#include "core/base/printable.h"
#include "server/commands/commands.h"
#include "server/library_settings.h"

namespace {

using tensord::server::kExitFailed;
using tensord::server::kExitUsage;

// Scripts raise messages of several lines; the contract is one line on stderr.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return tensord::to_printable(text);  // a server's words may be in it
}

}  // namespace

int main(int argc, char** argv) {
  tensord::server::apply_library_settings(argv);
  CLI::App app("Runs and serves TorchScript models without PyTorch.", "tensord");
  app.set_version_flag("--version", std::string("tensord ") + TENSORD_VERSION);
  app.require_subcommand(1);
  int exit_code = 0;
  tensord::server::add_run_command(app, &exit_code);
  tensord::server::add_convert_command(app, &exit_code);
  tensord::server::add_inspect_command(app, &exit_code);
  tensord::server::add_bench_command(app, &exit_code);
  tensord::server::add_ops_command(app, &exit_code);
  tensord::server::add_launch_command(app, &exit_code);
#ifdef TENSORD_SERVER
  tensord::server::add_serve_command(app, &exit_code);
  tensord::server::add_infer_command(app, &exit_code);
  tensord::server::add_train_command(app, &exit_code);
  tensord::server::add_jobs_command(app, &exit_code);
  tensord::server::add_models_commands(app, &exit_code);
  tensord::server::add_health_command(app);
  tensord::server::add_training_rank_command(app, &exit_code);
#endif
  // Commands would take over what is there before them.
  app.footer(
      "Exit codes:\n"
      "  0  it went well\n"
      "  1  it did not, and a line on stderr says why\n"
      "  2  the command line, or what it asks for, is wrong\n"
      "  3  the server cannot be reached, or did not answer in time");
  try {
    tensord::max_cpu_isa();  // throws where the setting is wrong
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::cerr << "tensord: " << one_line(error.what()) << " (see --help)" << std::endl;
    return kExitUsage;
  } catch (const tensord::server::CommandError& error) {
    std::cerr << "tensord: " << one_line(error.what()) << std::endl;
    return error.exit_code();
  } catch (const std::exception& error) {
    std::cerr << "tensord: " << one_line(error.what()) << std::endl;
    return kExitFailed;
  }
  return exit_code;
}
