#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include "core/base/error.h"
#include "server/transport/grpc/unpack.h"

namespace tensord::server {

// The message that `bytes` hold, unpacked within the limits; `bytes` are given up. Throws Error{kResourceExhausted}
// past the limits and {kInvalidArgument} for what is no such message.
template <class Message>
void read_message(grpc::ByteBuffer& bytes, const RequestLimits& limits, RequestLimits::Admission& admission,
                  Message& message) {
  unpack(bytes, limits, admission);
  const grpc::Status status = grpc::SerializationTraits<Message>::Deserialize(&bytes, &message);
  check(status.ok(), "the request is no ", Message::descriptor()->full_name());
}

template <class Message>
grpc::ByteBuffer to_byte_buffer(const Message& message) {
  grpc::ByteBuffer bytes;
  bool is_owned = true;
  const grpc::Status status = grpc::SerializationTraits<Message>::Serialize(message, &bytes, &is_owned);
  if (!status.ok()) fail(ErrorCode::kInternal, "the answer cannot be written: ", status.error_message());
  return bytes;
}

}  // namespace tensord::server
