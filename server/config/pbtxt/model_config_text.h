#pragma once

#include <string>
#include <vector>

#include "server/config/model_config.h"
#include "server/config/model_parameter.h"

namespace tensord::server {

// Reads config.pbtxt (protobuf text format). Unknown fields, and those that are known and mean nothing here, are logged
// by name and skipped, since a repository may hold settings of other servers; `unknown` gets a line for each of the
// first kind, which may be misspelled. Throws Error{kInvalidArgument} naming
// `origin`, line and column when the text is malformed or a value is out of range, Error{kUnimplemented} naming the
// field where a model would do something else than asked for without it.
ModelConfig parse_model_config(const std::string& text, const std::string& origin,
                               std::vector<std::string>* unknown = nullptr);

// The same from JSON, as RepositoryModelLoad carries it.
ModelConfig parse_model_config_json(const std::string& json, const std::string& origin);

// The `parameters` that mean something to every model. Those of generation are in
// server/executor/model/generation_options.h.
std::vector<ModelParameter> model_parameters();

}  // namespace tensord::server
