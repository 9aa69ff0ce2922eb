#include "server/executor/requests/status.h"

#include <gtest/gtest.h>

#include <new>

namespace tensord::server::status_test {
namespace {

TEST(Status, EveryErrorCodeHasItsStatus) {
  using Code = absl::StatusCode;
  const std::pair<ErrorCode, Code> expected[] = {{ErrorCode::kInvalidArgument, Code::kInvalidArgument},
                                                 {ErrorCode::kOutOfRange, Code::kOutOfRange},
                                                 {ErrorCode::kNotFound, Code::kNotFound},
                                                 {ErrorCode::kAlreadyExists, Code::kAlreadyExists},
                                                 {ErrorCode::kUnimplemented, Code::kUnimplemented},
                                                 {ErrorCode::kFailedPrecondition, Code::kFailedPrecondition},
                                                 {ErrorCode::kResourceExhausted, Code::kResourceExhausted},
                                                 {ErrorCode::kDataLoss, Code::kDataLoss},
                                                 {ErrorCode::kUnavailable, Code::kUnavailable},
                                                 {ErrorCode::kDeadlineExceeded, Code::kDeadlineExceeded},
                                                 {ErrorCode::kCancelled, Code::kCancelled},
                                                 {ErrorCode::kScriptRaised, Code::kInvalidArgument},
                                                 {ErrorCode::kInternal, Code::kInternal}};
  for (const auto& [from, to] : expected) {
    const absl::Status status = to_status(Error(from, "the message"));
    EXPECT_EQ(status.code(), to) << to_string(from);
    EXPECT_EQ(status.message(), "the message");
  }
}

template <class Thrown>
absl::Status status_of(const Thrown& thrown) {
  try {
    throw thrown;
  } catch (...) {
    return current_exception_status();
  }
}

TEST(Status, OtherExceptions) {
  EXPECT_EQ(status_of(std::bad_alloc()).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status_of(std::runtime_error("bug")).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status_of(Error(ErrorCode::kNotFound, "gone")).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace tensord::server::status_test
