#pragma once

#include <absl/container/inlined_vector.h>

#include <string>
#include <string_view>
#include <vector>

#include "server/executor/requests/request.h"

namespace tensord::server {

// A ModelInferResponse in parts: each is some protobuf bytes followed by the memory of a tensor.
struct EncodedResponse {
  struct Piece {
    std::string head;
    Tensor payload;  // row-major; undefined for a head without payload
  };
  absl::InlinedVector<Piece, 2> pieces;
  uint64_t size_bytes = 0;
  uint64_t copied_bytes = 0;  // payload copied into heads or to make it row-major
};

// The fields of a response other than its outputs.
struct ResponseHead {
  std::string_view model_name, model_version, id;
  const ParameterMap& parameters;
};

// The size of the response to these outputs, without the strings in its head. For charging it before it is made.
uint64_t response_bytes(const std::vector<InferTensor>& outputs, const std::vector<bool>& is_elsewhere);

// `is_elsewhere`: outputs whose data is in the client's shared memory; empty: none. Throws Error{kInvalidArgument} if
// the response exceeds gRPC's limit.
EncodedResponse encode_response(const ResponseHead& head, const std::vector<InferTensor>& outputs,
                                const std::vector<bool>& is_elsewhere = {});

// Turns it into a ModelStreamInferResponse.
void wrap_for_stream(EncodedResponse& response);

// A ModelStreamInferResponse with an error.
EncodedResponse encode_stream_error(std::string_view message, const ResponseHead& head);

}  // namespace tensord::server
