#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "server/commands/commands.h"

namespace {

// Scripts raise messages of several lines; the contract is one line on stderr.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

// Threads that wait for parallel work spin for milliseconds by default: on a machine with anything
// else to do, a parallel region then takes as long as a time slice. libgomp reads its setting when
// it is loaded, so the process starts itself again with a bound of some 20 microseconds. Who sets
// one of the variables decides.
void bound_spinning(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return;
  if (setenv("GOMP_SPINCOUNT", "1000", 1) == 0) execv("/proc/self/exe", argv);
  // Where that is not possible, the default works too.
}

}  // namespace

int main(int argc, char** argv) {
  bound_spinning(argv);
  CLI::App app("Runs and serves TorchScript models without PyTorch.", "tensord");
  app.set_version_flag("--version", std::string("tensord ") + TENSORD_VERSION);
  app.require_subcommand(1);
  int exit_code = 0;
  tensord::server::add_run_command(app, &exit_code);
  tensord::server::add_inspect_command(app, &exit_code);
  tensord::server::add_bench_command(app, &exit_code);
  tensord::server::add_ops_command(app, &exit_code);
#ifdef TENSORD_SERVER
  tensord::server::add_serve_command(app, &exit_code);
#endif
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::cerr << "tensord: " << one_line(error.what()) << " (see --help)" << std::endl;
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "tensord: " << one_line(error.what()) << std::endl;
    return 1;
  }
  return exit_code;
}
