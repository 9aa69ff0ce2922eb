#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tensord::server {

// Triton's flags that have no effect here, accepted so that existing command lines keep working.
struct TritonOptions {
  std::vector<std::string> given;  // "--backend-config", as they came
};

// Adds the flags to a command. `options` receives the given flags and must outlive the command. A value that asks for
// something unsupported is a usage error.
void add_triton_options(CLI::App& app, TritonOptions& options);

// Logs each given flag and why it has no effect. Call after the log sink is installed.
void log_triton_options(const TritonOptions& options);

}  // namespace tensord::server
