#pragma once

#include <optional>
#include <string>

namespace tensord {

// Reads a file completely; empty optional where this fails (no such file, a folder, a failing disk). Use it only for
// files with a bounded size.
std::optional<std::string> read_whole_file(const std::string& path);

}  // namespace tensord
