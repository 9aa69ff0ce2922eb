#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include "core/base/error.h"
#include "server/transport/grpc/byte_buffer.h"
#include "server/transport/grpc/message_cost.h"
#include "server/transport/grpc/unpack.h"

namespace tensord::server {

// Requests of at most this are not counted as what they become, so that probes are answered; of empty texts that is
// fifty times as much.
inline constexpr uint64_t kSmallRequestBytes = 512;
// Nor are answers of at most this.
inline constexpr uint64_t kSmallMessageBytes = 4096;

// The message that `bytes` hold, unpacked within the limits, and counted as what it becomes; `bytes` are given up.
// Throws Error{kResourceExhausted} past the limits and {kInvalidArgument} for what is no such message.
template <class Message>
void read_message(grpc::ByteBuffer& bytes, const RequestLimits& limits, RequestLimits::Admission& admission,
                  Message& message) {
  unpack(bytes, limits, admission);
  if (bytes.Length() > kSmallRequestBytes) {
    admission.grow(message_cost(to_wire_message(bytes), *Message::descriptor()));
  }
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
