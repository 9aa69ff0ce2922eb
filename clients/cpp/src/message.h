#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tensord/client/request.h"
#include "tensord/client/stream.h"

namespace tensord::client {

// Adds bytes field `tag`'s worth of a tensor to a message that is put together from slices: the tensor's memory follows
// as it is, held until gRPC lets go of it; small tensors are copied.
class MessageBuilder {
 public:
  // `head`: the other fields of the message, serialized.
  explicit MessageBuilder(std::string head) : pending_(std::move(head)) {}
  void add_bytes_field(int field, const Tensor& tensor);
  grpc::ByteBuffer finish();

 private:
  void flush();

  std::string pending_;
  std::vector<grpc::Slice> slices_;
};

// A ModelInferRequest. Throws InvalidArgumentError.
grpc::ByteBuffer encode(const Request& request);

// Outputs that the request wanted in shared memory, by name.
using OutputRegions = std::vector<std::pair<std::string, Tensor>>;
OutputRegions output_regions(const Request& request);

// A ModelInferResponse, and a ModelStreamInferResponse. Tensors keep the buffer's memory where it is aligned for them
// and in one piece. Throw Error{kDataLoss}.
Result decode(const grpc::ByteBuffer& message, const OutputRegions& regions);
// `find_regions` is asked with the request's id.
using FindRegions = std::function<OutputRegions(const std::string& id)>;
StreamResult decode_stream(const grpc::ByteBuffer& message, const FindRegions& find_regions);

}  // namespace tensord::client
