#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace tensord::server {

// What is logged, where and in which format. Flags of `serve`; everything but the file can change at run time.
struct LogSettings {
  std::string file;                                // empty: stderr
  std::string format = "text";                     // text, json, or one of Triton's formats: default, ISO8601
  bool info = true, warning = true, error = true;  // enabled levels
  uint32_t verbose_level = 0;                      // debug lines are written if above 0
  bool requests = false;                           // logs each inference request; fixed at startup
};

// Adds --log-file, --log-format, --log-info, --log-warning, --log-error, --log-verbose and --log-requests.
void add_log_options(CLI::App& app, LogSettings& settings);

// Throws Error{kInvalidArgument} for an unknown format.
void validate(const LogSettings& settings);

}  // namespace tensord::server
