#pragma once

#include <cstddef>
#include <string>

namespace tensord::server {

// The whole of a file of `size_bytes` bytes. Throws Error{kInvalidArgument} that begins with `what`, where it is not
// there, has another size or gives less than it has.
void read_exactly(const std::string& file, char* data, size_t size_bytes, const std::string& what);

}  // namespace tensord::server
