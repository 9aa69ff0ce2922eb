#pragma once

#include <cstddef>
#include <string>

namespace tensord::server {

// Reads a whole file of `size_bytes` bytes. Throws Error{kInvalidArgument} that starts with `what` if the file is
// missing, has another size, or is shorter than its size says.
void read_exactly(const std::string& file, char* data, size_t size_bytes, const std::string& what);

}  // namespace tensord::server
