#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tensord/client/request.h"
#include "tensord/client/stream.h"

namespace tensord::client {

// Assembles a message from slices. A tensor's memory is added without a copy and held until gRPC releases it; small
// tensors are copied.
class MessageBuilder {
 public:
  // `head` is the serialized message with its other fields.
  explicit MessageBuilder(std::string head) : pending_(std::move(head)) {}
  void add_bytes_field(int field, const Tensor& tensor);
  grpc::ByteBuffer finish();

 private:
  void flush();

  std::string pending_;
  std::vector<grpc::Slice> slices_;
};

// Serializes a ModelInferRequest. Throws InvalidArgumentError.
grpc::ByteBuffer encode(const Request& request);

// The outputs that the request wants in shared memory, by name.
using OutputRegions = std::vector<std::pair<std::string, Tensor>>;
OutputRegions output_regions(const Request& request);

// Parse a ModelInferResponse or a ModelStreamInferResponse. Tensors refer to the buffer's memory if it is contiguous
// and aligned. Throw Error{kDataLoss}.
Result decode(const grpc::ByteBuffer& message, const OutputRegions& regions);
// Called with the request's ID.
using FindRegions = std::function<OutputRegions(const std::string& id)>;
StreamResult decode_stream(const grpc::ByteBuffer& message, const FindRegions& find_regions);

}  // namespace tensord::client
