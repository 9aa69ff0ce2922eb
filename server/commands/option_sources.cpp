#include "server/commands/option_sources.h"

#include <CLI/CLI.hpp>

#include <cctype>
#include <cstdlib>
#include <string>

namespace tensord::server {
namespace {

std::string variable_of(const std::string& prefix, const std::string& name) {
  std::string out = prefix + "_";
  for (const char c : name) {
    out += c == '-' || c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return out;
}

// Binds an environment variable to each option of the command and of its subcommands. Skipped for --help, where CLI11
// would show the variable on every line.
void name_variables(CLI::App& command, const std::string& prefix) {
  for (CLI::Option* option : command.get_options()) {
    const auto& names = option->get_lnames();
    if (names.empty() || names.front() == "help" || !option->get_envname().empty()) continue;
    option->envname(variable_of(prefix, names.front()));
  }
  for (CLI::App* inner : command.get_subcommands({})) name_variables(*inner, variable_of(prefix, inner->get_name()));
}

}  // namespace

void add_option_sources(CLI::App& app, bool for_help) {
  const char* given = std::getenv("TENSORD_CONFIG");
  const std::string file = given == nullptr ? "" : given;
  app.set_config("--config", file,
                 "File with options, TOML with a section for each command: `[serve]`, then `http-port = 8000`; without "
                 "it $TENSORD_CONFIG",
                 /*config_required=*/!file.empty());
  app.allow_config_extras(false);
  if (for_help) return;
  for (CLI::App* command : app.get_subcommands({}))
    name_variables(*command, variable_of("TENSORD", command->get_name()));
}

}  // namespace tensord::server
