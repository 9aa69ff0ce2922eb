#pragma once

#include <functional>

#include "server/config/log_options.h"

namespace tensord::server {

// Writes log lines (core/base/log.h) to stderr or a file through spdlog, as `key=value` text or one JSON object per
// line. Call once, before threads start. Throws Error: kInvalidArgument for the format, kUnavailable if the file cannot
// be written.
void install_log_sink(const LogSettings& settings);

// The current settings. Thread-safe.
LogSettings log_settings();
// Returns LogSettings::requests without taking a lock.
bool logs_requests();

// Applies `change` to the settings atomically; the file cannot be changed. Thread-safe. Throws Error{kInvalidArgument}
// for a bad format, and whatever `change` throws; the settings are unchanged then.
void change_log_settings(const std::function<void(LogSettings&)>& change);

}  // namespace tensord::server
