#pragma once

#include <memory>
#include <string>

#include "core/base/file_descriptor.h"

namespace tensord {

// Opens a copy of a file that has no name, so that nobody else can change it: a clone where the file system can, else
// with bytes of its own in the folder for temporary files. It goes when it is neither open nor mapped. Errors name the
// file. Throws Error: kNotFound, kInvalidArgument (no regular file), kResourceExhausted (no room), kUnavailable (the
// file changed meanwhile, or cannot be read).
std::unique_ptr<FileDescriptor> copy_privately(const std::string& file);

// Opens the file itself, or such a copy of it. Throws Error{kNotFound} where it cannot be opened.
std::unique_ptr<FileDescriptor> open_for_reading(const std::string& file, bool copies);

}  // namespace tensord
