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

// A parsed inference request of either protocol, not yet validated against a model. Readers point into the message,
// which must outlive this.
struct InferMessage {
  struct Input {
    std::string name;
    std::string datatype;
    Dims shape;
    ParameterMap parameters;
    std::vector<WireReader> contents;  // InferTensorContents; several are merged
    // Other protocols, instead of contents: makes the `count` elements of `out`, whose name, datatype and shape are
    // set. Throws Error.
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

// Limits of a request of either protocol. Names are repeated in messages and tables, and ids in answers.
inline constexpr size_t kMaxTensors = 4096;
inline constexpr size_t kMaxParameters = 1024;       // of one map
inline constexpr size_t kMaxAllParameters = 32'768;  // of all maps of a message
inline constexpr size_t kMaxNameBytes = 16 << 10;    // of a tensor, datatype, model or parameter
inline constexpr size_t kMaxIdBytes = 64 << 10;

// Overhead of each of these beside its strings, until the request has ended.
inline constexpr uint64_t kTensorBytes = 1024, kParameterBytes = 256;

// Throws Error{kInvalidArgument} if a name is too long.
void check_name(std::string_view name, const char* what);
void check_request_id(std::string_view id);
// Cost of a parameter: its name and value are stored more than once.
uint64_t parameter_bytes(const std::string& name, const ParameterValue& value);

// Parses a ModelInferRequest. Throws Error{kInvalidArgument} for malformed messages and for more inputs, dimensions or
// parameters than the limits; {kResourceExhausted} if `admission`, when given, is exhausted.
InferMessage parse_infer_message(const WireMessage& message, RequestLimits::Admission* admission = nullptr);

}  // namespace tensord::server
