#pragma once

#include <string>

#include "server/config/model_config.h"

namespace tensord::server {

// Reads config.pbtxt (protobuf text format). Unknown fields, and those that are known and mean nothing here, are logged
// by name and skipped, since a repository may hold settings of other servers. Throws Error{kInvalidArgument} naming
// `origin`, line and column when the text is malformed or a value is out of range, Error{kUnimplemented} naming the
// field where a model would do something else than asked for without it.
ModelConfig parse_model_config(const std::string& text, const std::string& origin);

// The same from JSON, as RepositoryModelLoad carries it.
ModelConfig parse_model_config_json(const std::string& json, const std::string& origin);

}  // namespace tensord::server
