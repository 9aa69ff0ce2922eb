#pragma once

#include <memory>
#include <string>

#include "core/base/file_descriptor.h"

namespace tensord {

// Opens a nameless copy of a file, so that no other process can change it: a clone where the file system supports one,
// otherwise a full copy in the folder for temporary files. The copy disappears once it is neither open nor mapped.
// Errors name the file. Throws Error: kNotFound, kInvalidArgument (not a regular file), kResourceExhausted (no space),
// kUnavailable (the file changed meanwhile or cannot be read).
std::unique_ptr<FileDescriptor> copy_privately(const std::string& file);

// Opens the file itself, or such a copy. Throws Error{kNotFound} if the file cannot be opened.
std::unique_ptr<FileDescriptor> open_for_reading(const std::string& file, bool copies);

}  // namespace tensord
