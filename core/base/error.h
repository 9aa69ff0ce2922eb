#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace tensord {

// What went wrong, in terms a caller can act on. The server maps these one to
// one to gRPC status codes (server/executor/requests/status.h).
enum class ErrorCode {
  kInvalidArgument,  // the caller gave something that can never work
  kOutOfRange,       // an index or size outside of what exists
  kNotFound,         // a named thing is not there
  kAlreadyExists,
  kUnimplemented,       // valid, but this build or version cannot do it
  kFailedPrecondition,  // valid, but not in this state
  kResourceExhausted,   // out of memory, queue slots, or another bounded thing
  kDataLoss,            // a file or message is truncated or altered
  kUnavailable,
  kDeadlineExceeded,
  kCancelled,
  kScriptRaised,  // the script itself executed a `raise` or `assert`
  kInternal,      // a bug in tensord
};

// The only exception type the engine throws. The message starts with the
// operator or file it is about, then what was got and what was expected.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

const char* to_string(ErrorCode code);

template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <class... Parts>
[[noreturn]] void fail(ErrorCode code, const Parts&... parts) {
  throw Error(code, concat(parts...));
}

// Throws Error{kInvalidArgument} with the parts joined when `condition` is false.
template <class... Parts>
void check(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    fail(ErrorCode::kInvalidArgument, parts...);
}

// For invariants of tensord itself; never for anything that input can cause.
template <class... Parts>
void check_internal(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    fail(ErrorCode::kInternal, "internal error: ", parts...);
}

}  // namespace tensord
