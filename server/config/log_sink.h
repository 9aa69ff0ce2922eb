#pragma once

#include <functional>

#include "server/config/log_options.h"

namespace tensord::server {

// Sends log lines (core/base/log.h) through spdlog to stderr or a file, as `key=value` text or as one JSON object a
// line. Call once, before threads start. Throws Error: kInvalidArgument (the format), kUnavailable (the file cannot be
// written).
void install_log_sink(const LogSettings& settings);

// The settings in force. Thread-safe.
LogSettings log_settings();
// LogSettings::requests, without a lock.
bool logs_requests();

// Changes the settings by `change`, all at once; the file stays as it is. Thread-safe. Throws Error{kInvalidArgument}
// for a bad format, and what `change` throws; nothing is changed then.
void change_log_settings(const std::function<void(LogSettings&)>& change);

}  // namespace tensord::server
