#include "server/transport/infer/parameters.h"

#include "core/base/error.h"

namespace tensord::server {
namespace {

[[noreturn]] void fail_type(const std::string& name, const char* expected) {
  fail(ErrorCode::kInvalidArgument, "invalid value type for '", name, "' parameter, expected ", expected, ".");
}

bool get_bool(const std::string& name, const ParameterValue& value) {
  const bool* flag = std::get_if<bool>(&value);
  if (!flag) fail_type(name, "bool_param");
  return *flag;
}

uint64_t get_priority(const std::string& name, const ParameterValue& value) {
  if (const auto* priority = std::get_if<uint64_t>(&value)) return *priority;
  const auto* priority = std::get_if<int64_t>(&value);
  if (!priority) fail_type(name, "int64_param or uint64_param");
  check(*priority >= 0, "invalid value for 'priority', expected value >= 0.");
  return static_cast<uint64_t>(*priority);
}

uint64_t get_timeout_us(const std::string& name, const ParameterValue& value) {
  const auto* timeout = std::get_if<int64_t>(&value);
  if (!timeout) fail_type(name, "int64_param");
  check(*timeout >= 0, "invalid value for 'timeout', expected value >= 0.");
  return static_cast<uint64_t>(*timeout);
}

CorrelationId get_sequence(const std::string& name, const ParameterValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return {static_cast<uint64_t>(*number), {}};
  if (const auto* number = std::get_if<uint64_t>(&value)) return {*number, {}};
  const auto* text = std::get_if<std::string>(&value);
  if (!text) fail_type(name, "int64_param or string_param");
  // Bounded, because it is kept with the sequence after the request is gone.
  constexpr size_t kMaxSequenceBytes = 128;
  check(text->size() <= kMaxSequenceBytes, "the text of '", name, "' has ", text->size(), " bytes, at most ",
        kMaxSequenceBytes);
  return {0, *text};
}

void take_parameter(const std::string& name, const ParameterValue& value, InferRequest& request,
                    TransportParameters& out) {
  if (name == "sequence_id") {
    request.sequence = get_sequence(name, value);
  } else if (name == "sequence_start") {
    request.is_sequence_start = get_bool(name, value);
  } else if (name == "sequence_end") {
    request.is_sequence_end = get_bool(name, value);
  } else if (name == "priority") {
    request.priority = get_priority(name, value);
  } else if (name == "timeout") {
    request.queue_timeout_us = get_timeout_us(name, value);
  } else if (name == "triton_enable_empty_final_response") {
    out.wants_empty_final_response = get_bool(name, value);
  } else if (name.starts_with("triton_")) {
    fail(ErrorCode::kInvalidArgument, "parameter keys starting with 'triton_' are reserved; '", name,
         "' is not triton_enable_empty_final_response, the only one that requests may have");
  } else if (name == "headers" || name == "binary_data_output") {
    // KServe's client sends the same parameters over gRPC as over HTTP; Triton reserves these names over HTTP only.
  } else if (std::holds_alternative<std::monostate>(value)) {
    fail_type(name, "int64_param, bool_param, string_param, double_param or uint64_param");
  } else {
    request.parameters.emplace(name, value);
  }
}

template <class T>
const T* find_parameter(const ParameterMap& parameters, const char* name, const char* expected) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return nullptr;
  const T* value = std::get_if<T>(&found->second);
  if (!value) fail_type(name, expected);
  return value;
}

uint64_t get_size(const ParameterMap& parameters, const char* name, const std::string& tensor) {
  const auto found = parameters.find(name);
  if (found != parameters.end() && std::holds_alternative<uint64_t>(found->second)) {
    return std::get<uint64_t>(found->second);
  }
  const auto* size = find_parameter<int64_t>(parameters, name, "int64_param");
  if (!size) return 0;
  check(*size >= 0, "invalid value for '", name, "' parameter of '", tensor, "', expected value >= 0.");
  return static_cast<uint64_t>(*size);
}

SharedPlace read_place(const ParameterMap& parameters, const std::string& tensor) {
  SharedPlace place;
  place.offset = get_size(parameters, "shared_memory_offset", tensor);
  place.size_bytes = get_size(parameters, "shared_memory_byte_size", tensor);
  const auto* region = find_parameter<std::string>(parameters, "shared_memory_region", "string_param");
  if (!region) {
    check(!parameters.contains("shared_memory_offset") && !parameters.contains("shared_memory_byte_size"),
          "'shared_memory_offset' and 'shared_memory_byte_size' of '", tensor,
          "' need the parameter 'shared_memory_region'");
    return place;
  }
  check(!region->empty(), "'shared_memory_region' of '", tensor, "' must not be empty");
  check(parameters.contains("shared_memory_byte_size"), "'shared_memory_byte_size' parameter must be specified for '",
        tensor, "', with 'shared_memory_region'");
  place.region = *region;
  return place;
}

int64_t read_classes(const ParameterMap& parameters, const std::string& tensor) {
  const auto* classes = find_parameter<int64_t>(parameters, "classification", "int64_param");
  if (!classes) return 0;
  check(*classes > 0, "invalid value for 'classification' parameter of '", tensor, "', expected value >= 1.");
  return *classes;
}

}  // namespace

TransportParameters read_parameters(const InferMessage& message, InferRequest& request) {
  TransportParameters out;
  for (const auto& [name, value] : message.parameters) take_parameter(name, value, request, out);
  for (size_t i = 0; i < message.inputs.size(); ++i) {
    if (message.inputs[i].parameters.empty()) continue;
    SharedPlace place = read_place(message.inputs[i].parameters, message.inputs[i].name);
    if (place.is_none()) continue;
    out.input_places.resize(message.inputs.size());
    out.input_places[i] = std::move(place);
  }
  for (const InferMessage::RequestedOutput& output : message.outputs) {
    if (output.parameters.empty()) continue;
    TransportParameters::Output wanted{output.name, read_classes(output.parameters, output.name),
                                       read_place(output.parameters, output.name)};
    if (wanted.classes > 0 || !wanted.place.is_none()) out.outputs.push_back(std::move(wanted));
  }
  return out;
}

}  // namespace tensord::server
