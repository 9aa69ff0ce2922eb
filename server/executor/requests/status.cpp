#include "server/executor/requests/status.h"

#include <new>

#include "core/base/utf8.h"

namespace tensord::server {
namespace {

constexpr const char* kTooLargePayload = "tensord/too_large";

}  // namespace

bool is_too_large(const absl::Status& status) { return status.GetPayload(kTooLargePayload).has_value(); }

absl::StatusCode to_status_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return absl::StatusCode::kInvalidArgument;
    case ErrorCode::kOutOfRange: return absl::StatusCode::kOutOfRange;
    case ErrorCode::kNotFound: return absl::StatusCode::kNotFound;
    case ErrorCode::kAlreadyExists: return absl::StatusCode::kAlreadyExists;
    case ErrorCode::kUnimplemented: return absl::StatusCode::kUnimplemented;
    case ErrorCode::kFailedPrecondition: return absl::StatusCode::kFailedPrecondition;
    case ErrorCode::kResourceExhausted: return absl::StatusCode::kResourceExhausted;
    case ErrorCode::kDataLoss: return absl::StatusCode::kDataLoss;
    case ErrorCode::kUnavailable: return absl::StatusCode::kUnavailable;
    case ErrorCode::kDeadlineExceeded: return absl::StatusCode::kDeadlineExceeded;
    case ErrorCode::kCancelled: return absl::StatusCode::kCancelled;
    // The script raised an exception about the request's data.
    case ErrorCode::kScriptRaised: return absl::StatusCode::kInvalidArgument;
    case ErrorCode::kInternal: return absl::StatusCode::kInternal;
  }
  return absl::StatusCode::kInternal;
}

absl::Status to_status(const Error& error) {
  absl::Status status(to_status_code(error.code()), to_valid_utf8(error.what()));
  if (dynamic_cast<const TooLargeError*>(&error) != nullptr) status.SetPayload(kTooLargePayload, absl::Cord());
  return status;
}

absl::Status current_exception_status() {
  try {
    throw;
  } catch (const Error& error) {
    return to_status(error);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory");
  } catch (const std::exception& error) {
    return absl::InternalError(to_valid_utf8(error.what()));
  }
}

}  // namespace tensord::server
