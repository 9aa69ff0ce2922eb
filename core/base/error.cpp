#include "core/base/error.h"

#include <ostream>
#include <sstream>

namespace tensord {
namespace detail {

#define TENSORD_DEFINED(T) template void print_part<T>(std::ostream&, const void*);
TENSORD_FOR_PRINTED_TYPES(TENSORD_DEFINED)
#undef TENSORD_DEFINED

}  // namespace detail

void MessagePart::print(std::ostream& out) const {
  if (print_)
    print_(out, value_);
  else
    out << static_cast<const char*>(value_);
}

std::string join_parts(std::initializer_list<MessagePart> parts) {
  std::ostringstream out;
  for (const MessagePart& part : parts) part.print(out);
  return out.str();
}

void throw_error(ErrorCode code, std::initializer_list<MessagePart> parts) { throw Error(code, join_parts(parts)); }

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "INVALID_ARGUMENT";
    case ErrorCode::kOutOfRange: return "OUT_OF_RANGE";
    case ErrorCode::kNotFound: return "NOT_FOUND";
    case ErrorCode::kAlreadyExists: return "ALREADY_EXISTS";
    case ErrorCode::kUnimplemented: return "UNIMPLEMENTED";
    case ErrorCode::kFailedPrecondition: return "FAILED_PRECONDITION";
    case ErrorCode::kResourceExhausted: return "RESOURCE_EXHAUSTED";
    case ErrorCode::kDataLoss: return "DATA_LOSS";
    case ErrorCode::kUnavailable: return "UNAVAILABLE";
    case ErrorCode::kDeadlineExceeded: return "DEADLINE_EXCEEDED";
    case ErrorCode::kCancelled: return "CANCELLED";
    case ErrorCode::kScriptRaised: return "SCRIPT_RAISED";
    case ErrorCode::kInternal: return "INTERNAL";
  }
  return "INTERNAL";
}

}  // namespace tensord
