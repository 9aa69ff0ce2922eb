#pragma once

#include <string>

#include "server/config/model_config.h"

namespace tensord::server {

// Reads config.pbtxt (protobuf text format). Unknown fields are logged and skipped, since
// a repository may hold settings of other servers. Throws Error{kInvalidArgument} naming
// `origin`, line and column when the text is malformed or a value is out of range.
ModelConfig parse_model_config(const std::string& text, const std::string& origin);

}  // namespace tensord::server
