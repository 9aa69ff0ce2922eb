#pragma once

#include <absl/status/status.h>

#include <exception>

#include "core/base/error.h"

namespace tensord::server {

// The one place where the engine's errors become the server's statuses.
absl::StatusCode to_status_code(ErrorCode code);
absl::Status to_status(const Error& error);
// Of the exception being handled; anything but an Error is an internal error.
absl::Status current_exception_status();

}  // namespace tensord::server
