#pragma once

#include <string>
#include <vector>

#include "core/ops/schema.h"
#include "core/ops/value.h"

namespace tensord::server {

// The tuple or list of arguments that torch.save wrote. Of exported programs, whose methods take the parts of lists,
// tuples and dicts one by one ("items.0", "options.scale"), what a file nests is taken apart by these names. Throws
// Error as load_torch_file does, and kInvalidArgument naming the part that is not there.
std::vector<ops::Value> read_arguments(const std::string& path, const ops::Schema& schema);

}  // namespace tensord::server
