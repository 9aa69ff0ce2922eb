#include "server/transport/client_status.h"

#include <chrono>

#include "core/base/error.h"

namespace tensord::server {
namespace {

constexpr auto kConnectTimeout = std::chrono::seconds(10);

ErrorCode to_error_code(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT: return ErrorCode::kInvalidArgument;
    case grpc::StatusCode::NOT_FOUND: return ErrorCode::kNotFound;
    case grpc::StatusCode::ALREADY_EXISTS: return ErrorCode::kAlreadyExists;
    case grpc::StatusCode::FAILED_PRECONDITION: return ErrorCode::kFailedPrecondition;
    case grpc::StatusCode::RESOURCE_EXHAUSTED: return ErrorCode::kResourceExhausted;
    case grpc::StatusCode::OUT_OF_RANGE: return ErrorCode::kOutOfRange;
    case grpc::StatusCode::UNIMPLEMENTED: return ErrorCode::kUnimplemented;
    case grpc::StatusCode::DEADLINE_EXCEEDED: return ErrorCode::kDeadlineExceeded;
    case grpc::StatusCode::CANCELLED: return ErrorCode::kCancelled;
    case grpc::StatusCode::DATA_LOSS: return ErrorCode::kDataLoss;
    case grpc::StatusCode::UNAVAILABLE: return ErrorCode::kUnavailable;
    default: return ErrorCode::kInternal;
  }
}

}  // namespace

void check_status(const grpc::Status& status) {
  if (!status.ok()) throw Error(to_error_code(status.error_code()), status.error_message());
}

std::shared_ptr<grpc::Channel> connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  if (!channel->WaitForConnected(std::chrono::system_clock::now() + kConnectTimeout)) {
    fail(ErrorCode::kUnavailable, "no daemon answers at ", address);
  }
  return channel;
}

}  // namespace tensord::server
