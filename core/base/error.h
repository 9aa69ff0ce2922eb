#pragma once

#include <initializer_list>
#include <iosfwd>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tensord {

// The kinds of errors, as a caller can react to them. The server maps each one to a gRPC status code
// (server/executor/requests/status.h).
enum class ErrorCode {
  kInvalidArgument,  // the caller passed something that can never work
  kOutOfRange,       // an index or a size is out of range
  kNotFound,         // the named thing does not exist
  kAlreadyExists,
  kUnimplemented,       // valid, but this build or version does not support it
  kFailedPrecondition,  // valid, but not in the current state
  kResourceExhausted,   // memory, queue slots, or another bounded resource ran out
  kDataLoss,            // a file or message is truncated or corrupt
  kUnavailable,
  kDeadlineExceeded,
  kCancelled,
  kScriptRaised,  // the script executed `raise` or a failed `assert`
  kInternal,      // a bug in tensord
};

// The only exception type that the engine throws. The message starts with the operator or file, then says what was
// found and what was expected.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

const char* to_string(ErrorCode code);

namespace detail {

template <class T>
void print_part(std::ostream& out, const void* value) {
  out << *static_cast<const T*>(value);
}
// Compiled in error.cpp, so that <ostream> is not needed here.
// clang-format off
#define TENSORD_FOR_PRINTED_TYPES(_)                                                                        \
  _(bool) _(char) _(signed char) _(unsigned char) _(short) _(unsigned short) _(int) _(unsigned) _(long)     \
  _(unsigned long) _(long long) _(unsigned long long) _(float) _(double) _(std::string) _(std::string_view)
// clang-format on
#define TENSORD_DECLARED(T) extern template void print_part<T>(std::ostream&, const void*);
TENSORD_FOR_PRINTED_TYPES(TENSORD_DECLARED)
#undef TENSORD_DECLARED

}  // namespace detail

// One part of a message: a text, a number, or any value with an operator<<. It refers to the value, which must outlive
// it.
class MessagePart {
 public:
  MessagePart(const char* text) : value_(text), print_(nullptr) {}
  template <class T>
  MessagePart(const T& value) : value_(&value), print_(detail::print_part<T>) {}

  void print(std::ostream& out) const;

 private:
  const void* value_;
  void (*print_)(std::ostream& out, const void* value);  // null: the value is a C string
};

// Not a template, because nearly every function checks something: one copy of the code serves all kinds of parts.
std::string join_parts(std::initializer_list<MessagePart> parts);
[[noreturn, gnu::cold]] void throw_error(ErrorCode code, std::initializer_list<MessagePart> parts);

template <class... Parts>
std::string concat(const Parts&... parts) {
  return join_parts({parts...});
}

template <class... Parts>
[[noreturn]] void fail(ErrorCode code, const Parts&... parts) {
  throw_error(code, {parts...});
}

// Throws Error{kInvalidArgument} with the joined parts if `condition` is false.
template <class... Parts>
void check(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    throw_error(ErrorCode::kInvalidArgument, {parts...});
}

// Checks an invariant of tensord itself. Never use it for a condition that input can violate.
template <class... Parts>
void check_internal(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    throw_error(ErrorCode::kInternal, {"internal error: ", parts...});
}

}  // namespace tensord
