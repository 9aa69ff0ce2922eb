#include "tensord/client/error.h"

namespace tensord::client {

const char* to_string(StatusCode code) {
  switch (code) {
    case StatusCode::kCancelled: return "CANCELLED";
    case StatusCode::kUnknown: return "UNKNOWN";
    case StatusCode::kInvalidArgument: return "INVALID_ARGUMENT";
    case StatusCode::kDeadlineExceeded: return "DEADLINE_EXCEEDED";
    case StatusCode::kNotFound: return "NOT_FOUND";
    case StatusCode::kAlreadyExists: return "ALREADY_EXISTS";
    case StatusCode::kPermissionDenied: return "PERMISSION_DENIED";
    case StatusCode::kResourceExhausted: return "RESOURCE_EXHAUSTED";
    case StatusCode::kFailedPrecondition: return "FAILED_PRECONDITION";
    case StatusCode::kAborted: return "ABORTED";
    case StatusCode::kOutOfRange: return "OUT_OF_RANGE";
    case StatusCode::kUnimplemented: return "UNIMPLEMENTED";
    case StatusCode::kInternal: return "INTERNAL";
    case StatusCode::kUnavailable: return "UNAVAILABLE";
    case StatusCode::kDataLoss: return "DATA_LOSS";
    case StatusCode::kUnauthenticated: return "UNAUTHENTICATED";
  }
  return "UNKNOWN";
}

void throw_error(StatusCode code, const std::string& message) {
  switch (code) {
    case StatusCode::kInvalidArgument: throw InvalidArgumentError(message);
    case StatusCode::kNotFound: throw NotFoundError(message);
    case StatusCode::kUnavailable: throw UnavailableError(message);
    case StatusCode::kDeadlineExceeded: throw DeadlineExceededError(message);
    case StatusCode::kResourceExhausted: throw ResourceExhaustedError(message);
    case StatusCode::kFailedPrecondition: throw FailedPreconditionError(message);
    case StatusCode::kCancelled: throw CancelledError(message);
    case StatusCode::kUnimplemented: throw UnimplementedError(message);
    case StatusCode::kUnauthenticated: throw UnauthenticatedError(message);
    case StatusCode::kPermissionDenied: throw PermissionDeniedError(message);
    default: throw Error(code, message);
  }
}

}  // namespace tensord::client
