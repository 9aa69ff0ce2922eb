#pragma once

#include <grpcpp/support/byte_buffer.h>

#include "server/transport/grpc/request_limits.h"

namespace tensord::server {

// Messages reach the calls as clients sent them: gRPC would unpack a compressed one before anybody looks at its size,
// and a megabyte can become a gigabyte.

// Replaces a message that came compressed (gzip, deflate) by its plain bytes; others stay as they are. Each piece is
// counted by `admission` before it is allocated. Throws Error{kResourceExhausted} past the limits, {kInvalidArgument}
// for bytes that cannot be unpacked; the message is as it was then.
void unpack(grpc::ByteBuffer& message, const RequestLimits& limits, RequestLimits::Admission& admission);

}  // namespace tensord::server
