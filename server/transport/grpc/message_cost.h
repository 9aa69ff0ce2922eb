#pragma once

#include <google/protobuf/descriptor.h>

#include <cstdint>

#include "server/transport/grpc/wire_reader.h"

namespace tensord::server {

// A lower bound of the memory that protobuf's parser needs for these bytes: an empty list entry has two bytes here and
// becomes an object. Allocates nothing. Throws Error{kInvalidArgument} for a malformed message.
uint64_t message_cost(const WireMessage& bytes, const google::protobuf::Descriptor& type);

}  // namespace tensord::server
