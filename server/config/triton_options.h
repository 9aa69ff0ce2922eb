#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tensord::server {

// Flags that Triton has and that mean nothing here, so that command lines stay as they are.
struct TritonOptions {
  std::vector<std::string> given;  // "--backend-config", as they came
};

// Adds the flags to a command; what is given goes into `options`, which must outlive it. A value that asks for what
// cannot be had is an error of the command line.
void add_triton_options(CLI::App& app, TritonOptions& options);

// Logs each flag that was given, and why it means nothing. Once a log is there.
void log_triton_options(const TritonOptions& options);

}  // namespace tensord::server
