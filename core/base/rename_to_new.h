#pragma once

#include <filesystem>

namespace tensord {

// Puts a complete file or folder in its place, in one step, unless something is there. Throws Error{kAlreadyExists},
// and as AtomicFile does.
void rename_to_new(const std::filesystem::path& from, const std::filesystem::path& target);

}  // namespace tensord
