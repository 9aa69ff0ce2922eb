#pragma once

#include <absl/status/status.h>

#include <exception>

#include "core/base/error.h"

namespace tensord::server {

// An input that is larger than its model or the server takes: its code in gRPC, 413 in HTTP.
class TooLargeError : public Error {
 public:
  using Error::Error;
};
// Whether the status is that of a TooLargeError.
bool is_too_large(const absl::Status& status);

// The only place that maps the engine's error codes to gRPC status codes.
absl::StatusCode to_status_code(ErrorCode code);
absl::Status to_status(const Error& error);
// The status of the exception being handled; INTERNAL for anything but an Error.
absl::Status current_exception_status();

}  // namespace tensord::server
