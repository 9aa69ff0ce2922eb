#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include "core/base/error.h"
#include "server/transport/grpc/byte_buffer.h"
#include "server/transport/grpc/message_cost.h"
#include "server/transport/grpc/unpack.h"

namespace tensord::server {

// Requests up to this size are not charged for their parsed size, so that probes are always answered. With empty
// strings that is up to fifty times as much.
inline constexpr uint64_t kSmallRequestBytes = 512;
// Nor are answers up to this size.
inline constexpr uint64_t kSmallMessageBytes = 4096;

// Decompresses and parses `bytes` within the limits and charges the parsed size. Consumes `bytes`. Throws
// Error{kResourceExhausted} above the limits and {kInvalidArgument} for a malformed message.
template <class Message>
void read_message(grpc::ByteBuffer& bytes, const RequestLimits& limits, RequestLimits::Admission& admission,
                  Message& message) {
  unpack(bytes, limits, admission);
  if (bytes.Length() > kSmallRequestBytes) {
    admission.grow(message_cost(to_wire_message(bytes), *Message::descriptor()));
  }
  const grpc::Status status = grpc::SerializationTraits<Message>::Deserialize(&bytes, &message);
  check(status.ok(), "the request is not a ", Message::descriptor()->full_name());
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
