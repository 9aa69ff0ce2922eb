#pragma once

#include <grpcpp/support/byte_buffer.h>

#include "server/transport/grpc/wire_reader.h"

namespace tensord::server {

// The bytes of the message in gRPC's memory. REQUIRES: the message is not compressed (unpack.h).
WireMessage to_wire_message(const grpc::ByteBuffer& buffer);

}  // namespace tensord::server
