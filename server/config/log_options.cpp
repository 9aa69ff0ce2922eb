#include "server/config/log_options.h"

#include <CLI/CLI.hpp>

#include "core/base/error.h"

namespace tensord::server {

void add_log_options(CLI::App& app, LogSettings& settings) {
  app.add_option("--log-file", settings.file, "Append log lines to this file instead of stderr");
  app.add_option("--log-format", settings.format, "Format of log lines: text, json, or Triton's default or ISO8601")
      ->check(CLI::IsMember({"default", "ISO8601", "text", "json"}))
      ->capture_default_str();
  app.add_option("--log-info", settings.info, "Write informational lines")->capture_default_str();
  app.add_option("--log-warning", settings.warning, "Write warnings")->capture_default_str();
  app.add_option("--log-error", settings.error, "Write errors")->capture_default_str();
  app.add_option("--log-verbose", settings.verbose_level, "Above 0: also write debug lines")->capture_default_str();
  app.add_option("--log-requests", settings.requests,
                 "Write an info line for each inference request: model, version, id, protocol, status, seconds")
      ->capture_default_str();
}

void validate(const LogSettings& settings) {
  const std::string& format = settings.format;
  check(format == "default" || format == "ISO8601" || format == "text" || format == "json",
        "invalid argument for log_format, got: ", format.substr(0, 64));
}

}  // namespace tensord::server
