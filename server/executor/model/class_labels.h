#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/config/model_config.h"

namespace tensord::server {

// The class names of each output, by the output's name: the lines of its `label_filename`.
using ClassLabels = std::map<std::string, std::vector<std::string>>;

// Throws Error if a file cannot be read or is not text.
ClassLabels read_class_labels(const ModelConfig& config);

}  // namespace tensord::server
