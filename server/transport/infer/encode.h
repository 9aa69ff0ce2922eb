#pragma once

#include <absl/container/inlined_vector.h>

#include <string>
#include <string_view>
#include <vector>

#include "server/executor/requests/request.h"

namespace tensord::server {

// A ModelInferResponse in pieces: each is some bytes of protobuf, then the memory of a tensor
// as it is.
struct EncodedResponse {
  struct Piece {
    std::string head;
    Tensor payload;  // row-major; undefined when the head is all
  };
  absl::InlinedVector<Piece, 2> pieces;
  uint64_t size_bytes = 0;
  uint64_t copied_bytes = 0;  // payload copied into heads or to make it row-major
};

// What a response says besides its outputs.
struct ResponseHead {
  std::string_view model_name, model_version, id;
  const ParameterMap& parameters;
};

// What the response to these outputs takes, beside the texts of its head: for who counts it before it is made.
uint64_t response_bytes(const std::vector<InferTensor>& outputs, const std::vector<bool>& is_elsewhere);

// `is_elsewhere`: outputs whose data the client finds in its own memory; empty: none. Throws Error{kInvalidArgument}
// when the response is larger than gRPC can send.
EncodedResponse encode_response(const ResponseHead& head, const std::vector<InferTensor>& outputs,
                                const std::vector<bool>& is_elsewhere = {});

// Makes a ModelStreamInferResponse of it.
void wrap_for_stream(EncodedResponse& response);

// A ModelStreamInferResponse that says what went wrong with a request.
EncodedResponse encode_stream_error(std::string_view message, const ResponseHead& head);

}  // namespace tensord::server
