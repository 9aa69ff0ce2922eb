#pragma once

#include <string>
#include <string_view>

#include "core/distributed/digest.h"

namespace tensord::server {

using distributed::is_sha256;

// Hexadecimal, in small letters.
std::string sha256_hex(std::string_view bytes);

struct FileChecksums {
  std::string sha256;
  std::string git_sha1;  // of the file as a blob of git
};
// Throws Error that starts with the path.
FileChecksums checksums_of(const std::string& path);

}  // namespace tensord::server
