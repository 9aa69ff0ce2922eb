#pragma once

#include <string>

#include "protos/model_config.pb.h"
#include "server/config/model_config.h"

// Converts messages of model_config.proto to plain structs. All functions throw Error{kInvalidArgument} that names
// `origin`, the field and the invalid value.
namespace tensord::server {

// "TYPE_FP32" becomes "FP32" and TYPE_STRING becomes "BYTES", the names used on the wire; TYPE_INVALID becomes "".
std::string wire_datatype(inference::DataType type);
// The inverse; unknown names give TYPE_INVALID.
inference::DataType config_datatype(const std::string& wire);

ModelConfig read_model_config(const inference::ModelConfig& message, const std::string& origin);

// Parts of the conversion that have files of their own. `out` already holds the sizes, inputs and outputs.
void read_schedulers(const inference::ModelConfig& message, const std::string& origin, ModelConfig& out);
void read_parameters(const std::string& origin, ModelConfig& out);

// Throws Error{kUnimplemented} if a field is set that the model depends on and tensord does not support. Logs the names
// of fields that tensord ignores.
void check_unused_fields(const inference::ModelConfig& message, const std::string& origin);

}  // namespace tensord::server
