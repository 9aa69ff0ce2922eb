#pragma once

#include <absl/container/inlined_vector.h>

#include <functional>
#include <string>
#include <vector>

#include "core/tensor/dims.h"
#include "server/executor/requests/request.h"
#include "server/transport/grpc/request_limits.h"
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

// Bounds on what a request of any protocol may have. Names come again in messages and tables, and ids in answers.
inline constexpr size_t kMaxTensors = 4096;
inline constexpr size_t kMaxParameters = 1024;       // of one map
inline constexpr size_t kMaxAllParameters = 32'768;  // of all maps of a message
inline constexpr size_t kMaxNameBytes = 16 << 10;    // of a tensor, a datatype, a model, a parameter
inline constexpr size_t kMaxIdBytes = 64 << 10;

// What each of these takes beside its texts, wherever they are kept until the request is over.
inline constexpr uint64_t kTensorBytes = 1024, kParameterBytes = 256;

// Throws Error{kInvalidArgument} for one that is longer than they may be.
void check_name(std::string_view name, const char* what);
void check_request_id(std::string_view id);
// What a parameter takes: name and text are kept more than once.
uint64_t parameter_bytes(const std::string& name, const ParameterValue& value);

// Of a ModelInferRequest. Throws Error{kInvalidArgument} on malformed messages and on more inputs, dimensions or
// parameters than any real request has, {kResourceExhausted} where `admission`, if there is one, has no room for them.
InferMessage parse_infer_message(const WireMessage& message, RequestLimits::Admission* admission = nullptr);

}  // namespace tensord::server
