#pragma once

#include <optional>
#include <string>

namespace tensord {

// The bytes of a file; none where it cannot be read: it is not there, a folder, or the disk fails. Of files whose size
// is bounded by somebody else.
std::optional<std::string> file_text(const std::string& path);

}  // namespace tensord
