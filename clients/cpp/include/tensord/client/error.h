#pragma once

#include <stdexcept>
#include <string>

namespace tensord::client {

// gRPC's status codes.
enum class StatusCode {
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

const char* to_string(StatusCode code);

// Thrown by every call that fails, with the server's message. Errors found before a call (a shape that does not fit its
// values) are kInvalidArgument too. Catch this class or one of its subclasses below.
class Error : public std::runtime_error {
 public:
  Error(StatusCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  StatusCode code() const { return code_; }
  // Whether the same call may succeed if it is repeated.
  bool is_transient() const { return code_ == StatusCode::kUnavailable || code_ == StatusCode::kResourceExhausted; }

 private:
  StatusCode code_;
};

template <StatusCode kCode>
class ErrorOf : public Error {
 public:
  explicit ErrorOf(const std::string& message) : Error(kCode, message) {}
};

using InvalidArgumentError = ErrorOf<StatusCode::kInvalidArgument>;
using NotFoundError = ErrorOf<StatusCode::kNotFound>;
using UnavailableError = ErrorOf<StatusCode::kUnavailable>;
using DeadlineExceededError = ErrorOf<StatusCode::kDeadlineExceeded>;
using ResourceExhaustedError = ErrorOf<StatusCode::kResourceExhausted>;
using FailedPreconditionError = ErrorOf<StatusCode::kFailedPrecondition>;
using CancelledError = ErrorOf<StatusCode::kCancelled>;
using UnimplementedError = ErrorOf<StatusCode::kUnimplemented>;
using UnauthenticatedError = ErrorOf<StatusCode::kUnauthenticated>;
using PermissionDeniedError = ErrorOf<StatusCode::kPermissionDenied>;

// Throws the subclass for this code.
[[noreturn]] void throw_error(StatusCode code, const std::string& message);

}  // namespace tensord::client
