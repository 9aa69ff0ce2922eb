#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tensord::server {

// Parses "stable=2,canary=3"; 0 stands for "canary=", which removes the label. A label is a letter followed by up to 63
// letters, digits, '_', '-' and '.'. Throws Error{kInvalidArgument}.
std::map<std::string, int64_t> parse_labels(const std::string& text);

// The labels of a configuration. Throws Error{kInvalidArgument}.
std::map<std::string, int64_t> configured_labels(const std::map<std::string, std::string>& labels);

}  // namespace tensord::server
