#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tensord::distributed {

// The folder of the program or library that this code is in.
std::filesystem::path own_folder();

// Where a backend's object ("libtensord_gloo.so") may be: what the environment variable says, or else beside the
// program or library that this code is in, in ../lib/tensord, tensord or lib/tensord.
std::vector<std::string> places_of_object(const char* object, const char* variable);

// The address of `function` in the first of these objects that is there and opens; null where there is none, and
// `problem` says of each why. Objects are never closed. is_global: its symbols are for what is opened later as well.
void* find_in_object(const std::vector<std::string>& places, const char* function, bool is_global,
                     std::string& problem);

}  // namespace tensord::distributed
