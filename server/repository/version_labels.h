#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tensord::server {

// "stable=2,canary=3" → numbers; 0 for "canary=", which removes the label. A label is a letter and up to 63 letters,
// digits, '_', '-' and '.' after it. Throws Error{kInvalidArgument}.
std::map<std::string, int64_t> parse_labels(const std::string& text);

// The labels of a configuration. Throws Error{kInvalidArgument}.
std::map<std::string, int64_t> configured_labels(const std::map<std::string, std::string>& labels);

}  // namespace tensord::server
