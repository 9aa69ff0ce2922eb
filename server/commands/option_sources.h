#pragma once

namespace CLI {
class App;
}

namespace tensord::server {

// Where options come from beside the command line: a variable of the environment for each, TENSORD_SERVE_HTTP_PORT for
// --http-port of `tensord serve`, and a file, --config FILE or $TENSORD_CONFIG, with a section for each command:
//
//   [serve]
//   http-port = 8000
//   model-repository = ["/models"]
//
// The command line comes first, then the file, then the environment. A name in the file that no command has is an
// error. To be called when all commands are there; `for_help`: only so far that help tells of it.
void add_option_sources(CLI::App& app, bool for_help);

}  // namespace tensord::server
