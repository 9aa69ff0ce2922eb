#pragma once

#include <exception>

namespace tensord::server {

// Whether the operation may succeed later without a change of files: the disk was full or failed, or the system was out
// of files or memory.
bool is_retryable(const std::exception& error);

}  // namespace tensord::server
