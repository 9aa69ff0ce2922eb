#pragma once

#include <absl/container/inlined_vector.h>

#include <functional>
#include <string>
#include <vector>

#include "core/tensor/dims.h"
#include "server/executor/requests/request.h"
#include "server/transport/grpc/wire_reader.h"

namespace tensord::server {

// A request of infer, of whichever protocol, taken apart but not yet checked against a model. Readers point into
// the message, which must outlive this.
struct InferMessage {
  struct Input {
    std::string name;
    std::string datatype;
    Dims shape;
    ParameterMap parameters;
    std::vector<WireReader> contents;  // InferTensorContents; several merge
    // Instead of contents, of another protocol: makes the tensor or texts of `out`, whose name, datatype and shape are
    // set, of `count` elements. Throws Error.
    std::function<void(int64_t count, InferTensor& out)> fill;
  };
  struct RequestedOutput {
    std::string name;
    ParameterMap parameters;
  };
  std::string model_name;
  std::string model_version;
  std::string id;
  ParameterMap parameters;
  std::vector<Input> inputs;
  std::vector<RequestedOutput> outputs;
  absl::InlinedVector<WireReader, 2> raw_contents;
};

// Of a ModelInferRequest. Throws Error{kInvalidArgument} on malformed messages and on more inputs, dimensions or
// parameters than any real request has.
InferMessage parse_infer_message(const WireMessage& message);

}  // namespace tensord::server
