#pragma once

#include <string>

#include "protos/model_config.pb.h"
#include "server/config/model_config.h"

// From the messages of model_config.proto to their plain form. All throw Error{kInvalidArgument} with `origin`, the
// field and the value, for what cannot be.
namespace tensord::server {

// "TYPE_FP32" is "FP32" on the wire, TYPE_STRING is "BYTES"; TYPE_INVALID is empty.
std::string wire_datatype(inference::DataType type);
// The other way; TYPE_INVALID for what has no number there.
inference::DataType config_datatype(const std::string& wire);

ModelConfig read_model_config(const inference::ModelConfig& message, const std::string& origin);

// Parts of it, in files of their own. `out` has what was read before: sizes, inputs, outputs.
void read_schedulers(const inference::ModelConfig& message, const std::string& origin, ModelConfig& out);
void read_parameters(const std::string& origin, ModelConfig& out);

// Throws Error{kUnimplemented} for set fields that a model needs and tensord has not; logs those that tensord has no
// use for, by their names.
void check_unused_fields(const inference::ModelConfig& message, const std::string& origin);

}  // namespace tensord::server
