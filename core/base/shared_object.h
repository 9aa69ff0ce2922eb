#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tensord {

// The folder of the program or library that contains this code.
std::filesystem::path own_folder();

// Candidate paths of a shared library that is opened when it is needed ("libtensord_gloo.so"): the value of the
// environment variable, or else the folder of the program or library that contains this code, and from there
// ../lib/tensord, ../libexec/tensord (of a wheel), tensord and lib/tensord.
std::vector<std::string> places_of_object(const char* object, const char* variable);

// Returns the address of `function` in the first of these libraries that can be opened, or null; then `problem` lists
// the reason for each. Libraries are never closed. With is_global, libraries opened later see its symbols.
void* find_in_object(const std::vector<std::string>& places, const char* function, bool is_global,
                     std::string& problem);

}  // namespace tensord
