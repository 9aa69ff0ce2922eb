#pragma once

#include "server/repository/folder/layout.h"

namespace tensord::server {

// Of --disable-auto-complete-config: throws Error{kInvalidArgument} with Triton's texts where config.pbtxt is not
// there, or leaves something of an input or output to the model's file.
void check_config_completeness(const ModelLayout& model);

}  // namespace tensord::server
