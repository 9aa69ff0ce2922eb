#pragma once

#include <grpcpp/support/byte_buffer.h>

#include "server/transport/grpc/request_limits.h"

namespace tensord::server {

// Messages arrive as the client sent them. gRPC would decompress a message before its size is checked, and a megabyte
// can become a gigabyte.

// Decompresses a message (gzip, deflate); others are unchanged. Each piece is charged to `admission` before it is
// allocated. Throws Error{kResourceExhausted} above the limits and {kInvalidArgument} for malformed data; the message
// is then unchanged.
void unpack(grpc::ByteBuffer& message, const RequestLimits& limits, RequestLimits::Admission& admission);

}  // namespace tensord::server
