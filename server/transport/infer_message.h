#pragma once

#include <absl/container/inlined_vector.h>

#include <string>
#include <vector>

#include "core/tensor/dims.h"
#include "server/executor/request.h"
#include "server/transport/wire_reader.h"

namespace tensord::server {

// A ModelInferRequest taken apart but not yet checked against a model. Readers point into
// the message, which must outlive this.
struct InferMessage {
  struct Input {
    std::string name;
    std::string datatype;
    Dims shape;
    ParameterMap parameters;
    std::vector<WireReader> contents;  // InferTensorContents; several merge
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

// Throws Error{kInvalidArgument} on malformed messages and on more inputs, dimensions or
// parameters than any real request has.
InferMessage parse_infer_message(const WireMessage& message);

}  // namespace tensord::server
