#pragma once

#include <exception>

namespace tensord::server {

// Whether the same may work later though no file changes: the disk was full or failed, the system had no more files or
// memory.
bool is_retryable(const std::exception& error);

}  // namespace tensord::server
