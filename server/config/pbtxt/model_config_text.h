#pragma once

#include <string>
#include <vector>

#include "server/config/model_config.h"
#include "server/config/model_parameter.h"

namespace tensord::server {

// Parses config.pbtxt (protobuf text format). A repository may hold settings for other servers, so unknown fields and
// known fields without effect here are logged by name and skipped. `unknown` gets one line per unknown field, which may
// be a misspelling. Throws Error{kInvalidArgument} with `origin`, line and column for malformed text or a value out of
// range, and Error{kUnimplemented} naming a field that the model depends on and tensord does not support.
ModelConfig parse_model_config(const std::string& text, const std::string& origin,
                               std::vector<std::string>* unknown = nullptr);

// Parses the JSON form, which RepositoryModelLoad carries.
ModelConfig parse_model_config_json(const std::string& json, const std::string& origin);

// The `parameters` that apply to every model. Those of generation are in server/executor/model/generation_options.h.
std::vector<ModelParameter> model_parameters();

}  // namespace tensord::server
