#include "server/transport/grpc/byte_buffer.h"

#include <grpcpp/support/slice.h>

#include "core/base/error.h"

namespace tensord::server {

WireMessage to_wire_message(const grpc::ByteBuffer& buffer) {
  WireMessage message;
  auto slice = std::make_shared<grpc::Slice>();
  if (buffer.TrySingleSlice(slice.get()).ok()) {
    message.add_piece({slice->begin(), slice->size()});
    message.owner = std::move(slice);
    return message;
  }
  auto slices = std::make_shared<std::vector<grpc::Slice>>();
  if (!buffer.Dump(slices.get()).ok()) fail(ErrorCode::kInvalidArgument, "the request cannot be read");
  for (const grpc::Slice& piece : *slices) message.add_piece({piece.begin(), piece.size()});
  message.owner = std::move(slices);
  return message;
}

}  // namespace tensord::server
