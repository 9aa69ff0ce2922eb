#pragma once

#include "server/repository/folder/layout.h"

namespace tensord::server {

// For --disable-auto-complete-config: throws Error{kInvalidArgument} with Triton's messages if config.pbtxt is missing
// or does not specify an input or output completely.
void check_config_completeness(const ModelLayout& model);

}  // namespace tensord::server
