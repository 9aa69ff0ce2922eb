#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace tensord::server {

// What is logged, where to and how. Flags of `serve`; all but the file can be changed while it runs.
struct LogSettings {
  std::string file;                                // empty: stderr
  std::string format = "text";                     // text, json, or a form of Triton's: default, ISO8601
  bool info = true, warning = true, error = true;  // whether lines of these levels are written
  uint32_t verbose_level = 0;                      // above 0: debug lines as well
  bool requests = false;                           // a line for each inference request; only set at the start
};

// Adds --log-file, --log-format, --log-info, --log-warning, --log-error, --log-verbose and --log-requests.
void add_log_options(CLI::App& app, LogSettings& settings);

// Throws Error{kInvalidArgument} for a format that there is not.
void validate(const LogSettings& settings);

}  // namespace tensord::server
