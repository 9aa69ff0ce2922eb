#include "server/transport/infer_parameters.h"

#include "core/base/error.h"

namespace tensord::server {
namespace {

template <class T>
const T* get(const ParameterValue& value) {
  return std::get_if<T>(&value);
}

void check_type(bool is_right, const std::string& name, const char* expected) {
  check(is_right, "invalid value type for '", name, "' parameter, expected ", expected, ".");
}

void check_request_parameter(const std::string& name, const ParameterValue& value, RequestParameters& out) {
  if (name == "sequence_id") {
    check_type(get<int64_t>(value) || get<std::string>(value) || get<uint64_t>(value), name,
               "int64_param or string_param");
  } else if (name == "sequence_start" || name == "sequence_end" || name == "triton_enable_empty_final_response") {
    check_type(get<bool>(value), name, "bool_param");
  } else if (name == "priority") {
    check_type(get<int64_t>(value) || get<uint64_t>(value), name, "int64_param or uint64_param");
    const int64_t* priority = get<int64_t>(value);
    check(!priority || *priority >= 0, "invalid value for 'priority' parameter, it must not be negative");
  } else if (name == "timeout") {
    check_type(get<int64_t>(value), name, "int64_param");
    check(*get<int64_t>(value) >= 0, "invalid value for 'timeout' parameter, it must not be negative");
    out.timeout_us = *get<int64_t>(value);
  } else if (name.starts_with("triton_") || name == "headers" || name == "binary_data_output") {
    fail(ErrorCode::kInvalidArgument, "parameter keyword '", name, "' is reserved and cannot be set by a client");
  }
}

void check_tensor_parameters(const ParameterMap& parameters) {
  for (const auto& [name, value] : parameters) {
    if (name.starts_with("shared_memory_")) {
      fail(ErrorCode::kUnimplemented,
           "Client shared memory is disabled. Send the tensor's data in the request instead.");
    }
    if (name == "classification") {
      check_type(get<int64_t>(value), name, "int64_param");
      fail(ErrorCode::kUnimplemented, "output parameter 'classification' is not supported");
    }
  }
}

}  // namespace

RequestParameters check_parameters(const InferMessage& message) {
  RequestParameters out;
  for (const auto& [name, value] : message.parameters) check_request_parameter(name, value, out);
  for (const auto& input : message.inputs) check_tensor_parameters(input.parameters);
  for (const auto& output : message.outputs) check_tensor_parameters(output.parameters);
  return out;
}

}  // namespace tensord::server
