#pragma once

#include <string>
#include <string_view>

namespace tensord::server {

// Hexadecimal, in small letters.
std::string sha256_hex(std::string_view bytes);

struct FileChecksums {
  std::string sha256;
  std::string git_sha1;  // of the file as a blob of git
};
// Throws Error that starts with the path.
FileChecksums checksums_of(const std::string& path);

bool is_sha256(std::string_view text);

}  // namespace tensord::server
