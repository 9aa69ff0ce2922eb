#pragma once

#include <string>
#include <vector>

#include "server/executor/model.h"

namespace tensord::server {

// A ModelInferResponse in pieces: each is some bytes of protobuf, then the memory of a tensor
// as it is.
struct EncodedResponse {
  struct Piece {
    std::string head;
    Tensor payload;  // row-major; undefined when the head is all
  };
  std::vector<Piece> pieces;
  uint64_t size_bytes = 0;
  uint64_t copied_bytes = 0;  // payload copied into heads or to make it row-major
};

// Throws Error{kInvalidArgument} when the response is larger than gRPC can send.
EncodedResponse encode_response(const std::string& model_name, const std::string& model_version, const std::string& id,
                                const std::vector<InferTensor>& outputs);

}  // namespace tensord::server
