#pragma once

#include <string>
#include <vector>

#include "core/ops/schema.h"
#include "core/ops/value.h"

namespace tensord::server {

// Reads the tuple or list of arguments that torch.save wrote. Methods of exported programs take flattened lists, tuples
// and dicts ("items.0", "options.scale"), so the file's nested values are flattened by these names. Throws Error as
// load_torch_file does, and kInvalidArgument that names a missing value.
std::vector<ops::Value> read_arguments(const std::string& path, const ops::Schema& schema);

}  // namespace tensord::server
