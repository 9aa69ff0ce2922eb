#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tensord::server {

// Adds sources of options besides the command line: an environment variable for each option (TENSORD_SERVE_HTTP_PORT
// for --http-port of `tensord serve`), and a file, --config FILE or $TENSORD_CONFIG, with a section per command:
//
//     [serve]
//     http-port = 8000
//     model-repository = ["/models"]
//
// The command line takes precedence over the file, and the file over the environment. Unknown names in the file are
// errors. Call after all commands were added. `for_help` adds only what the help shows.
void add_option_sources(CLI::App& app, bool for_help);

// The long names of a command's options, without the dashes and without help.
std::vector<std::string> option_names(const CLI::App& command);

// A warning for each variable of the environment that looks as if it were meant for this command, or one within it, and
// sets nothing. It is no error: an environment may have variables of others. Empty before add_option_sources().
std::vector<std::string> unknown_variables(const CLI::App& command);

}  // namespace tensord::server
