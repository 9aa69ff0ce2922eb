#pragma once

#include <google/protobuf/descriptor.h>

#include <cstdint>

#include "server/transport/grpc/wire_reader.h"

namespace tensord::server {

// At least what protobuf's parser makes of these bytes as such a message: an empty entry of a list is two bytes there,
// and an object here. Takes no memory itself. Throws Error{kInvalidArgument} for bytes that are no message.
uint64_t message_cost(const WireMessage& bytes, const google::protobuf::Descriptor& type);

}  // namespace tensord::server
