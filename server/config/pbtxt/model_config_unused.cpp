// Fields of config.pbtxt that tensord does not support.
#include <google/protobuf/message.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "server/config/pbtxt/model_config_reader.h"

namespace tensord::server {
namespace {

// Refused: ignoring them would change the model's inputs or outputs, or skip a requested check.
constexpr const char* kRefused[] = {"batch_input", "batch_output", "model_repository_agents.agents"};

// Logged and ignored: they tune other servers or devices that tensord does not have.
constexpr const char* kUnusedFields[] = {
    "optimization",
    "cc_model_filenames",
    "model_operations.op_library_filename",
    "runtime",
    "model_metrics",
    "input.is_non_linear_format_io",
    "output.is_non_linear_format_io",
    "instance_group.profile",
    "instance_group.passive",
    "instance_group.secondary_devices",
    "sequence_batching.state.use_same_buffer_for_input_output",
    "sequence_batching.state.use_growable_memory",
};

// Whether the field at the path is set; in a repeated message, in any element.
bool has_field(const google::protobuf::Message& message, std::string_view path) {
  const size_t dot = path.find('.');
  const auto* field = message.GetDescriptor()->FindFieldByName(std::string(path.substr(0, dot)));
  check_internal(field != nullptr, "no field ", path, " in ", message.GetDescriptor()->full_name());
  const auto* reflection = message.GetReflection();
  if (field->is_repeated()) {
    const int size = reflection->FieldSize(message, field);
    if (dot == std::string_view::npos) return size > 0;
    for (int i = 0; i < size; ++i) {
      if (has_field(reflection->GetRepeatedMessage(message, field, i), path.substr(dot + 1))) return true;
    }
    return false;
  }
  if (!reflection->HasField(message, field)) return false;
  return dot == std::string_view::npos || has_field(reflection->GetMessage(message, field), path.substr(dot + 1));
}

}  // namespace

void check_unused_fields(const inference::ModelConfig& message, const std::string& origin) {
  for (const char* path : kRefused) {
    if (has_field(message, path)) fail(ErrorCode::kUnimplemented, origin, ": ", path, " is not supported");
  }
  for (const char* path : kUnusedFields) {
    if (has_field(message, path)) {
      log(LogLevel::kWarning, "config field not used", {{"file", origin}, {"field", path}});
    }
  }
}

}  // namespace tensord::server
