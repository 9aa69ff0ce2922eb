#include "server/commands/option_sources.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include "core/base/error.h"
#include "core/base/nearest.h"
#include "server/commands/option_file.h"

namespace tensord::server {
namespace {

// Read by name, whatever the command.
const std::set<std::string> kOfAllCommands = {"TENSORD_ADDRESS", "TENSORD_TOKEN", "TENSORD_CONFIG"};

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

void collect_variables(const CLI::App& command, std::set<std::string>& out) {
  for (const CLI::Option* option : command.get_options()) out.insert(option->get_envname());
  for (const CLI::App* inner : command.get_subcommands([](const CLI::App*) { return true; }))
    collect_variables(*inner, out);
}

// CLI11's reader behind our check.
class OptionFile : public CLI::ConfigTOML {
 public:
  explicit OptionFile(const CLI::App& app) : app_(app) {}
  std::vector<CLI::ConfigItem> from_config(std::istream& in) const override {
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    std::istringstream checked(plain_option_file(app_, app_.get_config_ptr()->as<std::string>(), text));
    return CLI::ConfigTOML::from_config(checked);
  }

 private:
  const CLI::App& app_;
};

}  // namespace

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (name != "help") names.push_back(name);
    }
  }
  return names;
}

std::vector<std::string> unknown_variables(const CLI::App& command) {
  const CLI::App* top = &command;
  while (top->get_parent() && top->get_parent()->get_parent()) top = top->get_parent();
  if (!top->get_parent()) return {};
  std::set<std::string> known, own;
  collect_variables(*top->get_parent(), known);
  collect_variables(*top, own);
  const std::string start = "TENSORD_", prefix = variable_of("TENSORD", top->get_name()) + "_";
  const std::vector<std::string> names(own.upper_bound(""), own.end());
  std::vector<std::string> out;
  for (char** at = environ; at && *at; ++at) {
    const std::string name = std::string(*at).substr(0, std::string_view(*at).find('='));
    if (!name.starts_with(start) || known.contains(name) || kOfAllCommands.contains(name)) continue;
    std::string meant = prefix + name.substr(start.size());  // the command was left out
    if (name.starts_with(prefix)) {
      meant = nearest(name, names);
    } else if (!own.contains(meant)) {
      continue;
    }
    out.push_back(concat("the variable ", name, " sets no option of tensord ", top->get_name(),
                         meant.empty() ? "" : concat("; did you mean ", meant, "?")));
  }
  return out;
}

void add_option_sources(CLI::App& app, bool for_help) {
  const char* given = std::getenv("TENSORD_CONFIG");
  const std::string file = given == nullptr ? "" : given;
  app.set_config("--config", file,
                 "File with options, TOML with a section for each command: `[serve]`, then `http-port = 8000`; without "
                 "it $TENSORD_CONFIG",
                 /*config_required=*/!file.empty());
  app.config_formatter(std::make_shared<OptionFile>(app));
  app.allow_config_extras(false);
  if (for_help) return;
  for (CLI::App* command : app.get_subcommands({}))
    name_variables(*command, variable_of("TENSORD", command->get_name()));
}

}  // namespace tensord::server
