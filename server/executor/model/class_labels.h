#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/config/model_config.h"

namespace tensord::server {

// Names of the classes that an output's values are of, by the output's name: the lines of its `label_filename`.
using ClassLabels = std::map<std::string, std::vector<std::string>>;

// Throws Error when a file cannot be read or is no text.
ClassLabels read_class_labels(const ModelConfig& config);

}  // namespace tensord::server
