#pragma once

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

}  // namespace tensord::server
