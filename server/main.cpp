#include <CLI/CLI.hpp>

#include <algorithm>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "core/base/cpu_isa.h"
#include "core/base/nearest.h"
#include "core/base/printable.h"
#include "server/commands/commands.h"
#include "server/commands/option_sources.h"
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

// The innermost command that the arguments name.
const CLI::App& named_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  for (const std::string& argument : arguments) {
    for (const CLI::App* inner : command->get_subcommands([](const CLI::App*) { return true; })) {
      if (inner->get_name() == argument) {
        command = inner;
        break;
      }
    }
  }
  return *command;
}

bool takes(const CLI::App& app, const std::string& flag) {
  const std::vector<std::string> names = tensord::server::option_names(app);
  return std::ranges::find(names, flag.substr(2)) != names.end();
}

// `serve` logs them, in the form of its log.
void warn_of_variables(const CLI::App& command) {
  if (command.get_name() == "serve") return;
  for (const std::string& warning : tensord::server::unknown_variables(command)) {
    std::cerr << "tensord: warning: " << one_line(warning) << std::endl;
  }
}

// "; -o,--output: The file to write" of the required option that the error names.
std::string meaning_of(const CLI::ParseError& error, const CLI::App& app, const std::vector<std::string>& arguments) {
  if (dynamic_cast<const CLI::RequiredError*>(&error) == nullptr) return {};
  for (const CLI::Option* option : named_command(app, arguments).get_options()) {
    if (!option->get_positional() && option->get_name() + " is required" == error.what())
      return "; " + option->get_name(false, true) + ": " + option->get_description();
  }
  return {};
}

// "; did you mean --model-repository?" for the first unknown flag or command.
std::string nearest_argument(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App& command = named_command(app, arguments);
  std::vector<std::string> flags, commands;
  for (const std::string& name : tensord::server::option_names(command)) flags.push_back("--" + name);
  for (const CLI::App* inner : command.get_subcommands([](const CLI::App*) { return true; })) {
    if (!inner->get_group().empty()) commands.push_back(inner->get_name());  // the others are hidden
  }
  bool is_behind = false;  // the command's name
  for (const std::string& argument : arguments) {
    is_behind = is_behind || argument == command.get_name();
    const bool is_flag = argument.starts_with("--");
    const std::string name = argument.substr(0, is_flag ? argument.find('=') : argument.npos);
    const std::vector<std::string>& names = is_flag ? flags : commands;
    if (is_flag && is_behind && std::ranges::find(names, name) == names.end() && takes(app, name)) {
      return "; " + name + " stands before the command: tensord " + name + " … " + command.get_name();
    }
    if (name == "--help" || argument == command.get_name() || std::ranges::find(names, name) != names.end()) continue;
    const std::string near = tensord::nearest(name, names);
    if (!near.empty()) return "; did you mean " + near + "?";
    if (!is_flag && !commands.empty()) return tensord::right_names(name, commands, commands.size());
  }
  return {};
}

std::string explained(const CLI::ParseError& error, const CLI::App& app, const std::vector<std::string>& arguments) {
  return error.what() + meaning_of(error, app, arguments) + nearest_argument(app, arguments);
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
  tensord::server::add_check_command(app, &exit_code);
  tensord::server::add_bench_command(app, &exit_code);
  tensord::server::add_ops_command(app, &exit_code);
  tensord::server::add_devices_command(app, &exit_code);
  tensord::server::add_launch_command(app, &exit_code);
#ifdef TENSORD_SERVER
  tensord::server::add_config_command(app, &exit_code);
  tensord::server::add_quantize_command(app, &exit_code);
  tensord::server::add_serve_command(app, &exit_code);
  tensord::server::add_infer_command(app, &exit_code);
  tensord::server::add_train_command(app, &exit_code);
  tensord::server::add_jobs_command(app, &exit_code);
  tensord::server::add_models_commands(app, &exit_code);
  tensord::server::add_fetch_command(app, &exit_code);
  tensord::server::add_health_command(app, &exit_code);
  tensord::server::add_training_rank_command(app, &exit_code);
#endif
  const bool wants_help = std::any_of(
      argv, argv + argc, [](const std::string& argument) { return argument == "--help" || argument == "-h"; });
  tensord::server::add_option_sources(app, wants_help);
  // The footer is set after the commands are added, because a new command inherits an existing footer.
  app.footer(
      "Each option may also be given by a variable, TENSORD_SERVE_HTTP_PORT for --http-port of serve, or in the file\n"
      "that --config names; the command line comes first, then the file, then variables.\n"
      "\n"
      "Exit codes:\n"
      "  0  it went well\n"
      "  1  it did not, and a line on stderr says why\n"
      "  2  the command line, or what it asks for, is wrong\n"
      "  3  the server cannot be reached, or did not answer in time");
  try {
    tensord::max_cpu_isa();  // throws where the setting is wrong
    warn_of_variables(named_command(app, {argv + 1, argv + argc}));
    app.parse(argc, argv);
  } catch (const CLI::ConfigError& error) {
    std::cerr << "tensord: " << one_line(error.what()) << std::endl;
    return kExitUsage;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::cerr << "tensord: " << one_line(explained(error, app, {argv + 1, argv + argc})) << " (see --help)"
              << std::endl;
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
