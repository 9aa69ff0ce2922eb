#pragma once

#include <string>

namespace tensord::server {

// Sends log lines (core/base/log.h) through spdlog to stderr, as `key=value` text or as one
// JSON object a line. Call once, before threads start.
void install_log_sink(const std::string& format, bool is_verbose);

}  // namespace tensord::server
