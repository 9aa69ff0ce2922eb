#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "server/config/model_config.h"

namespace tensord::server {

// A model as it lies on disk: <repository>/<name>/<version>/model.pt, optional config.pbtxt.
struct ModelLayout {
  struct Version {
    int64_t number = 0;
    std::filesystem::path file;  // resolved; inside the repository
    std::string error;           // why it cannot be loaded; file is empty then
  };
  std::string name;
  ModelConfig config;
  std::vector<Version> versions;  // chosen by the version policy, ascending
  std::string error;              // what is wrong with the model as a whole, or empty
};

// Looks at one repository. Never throws for what is wrong with a single model; throws
// Error{kNotFound} when the folder itself is not there. Symlinks that lead out of the
// repository are refused.
std::vector<ModelLayout> scan_repository(const std::string& root);

// Every repository; a model that lies in two of them is an error of that model.
std::vector<ModelLayout> scan_repositories(const std::vector<std::string>& roots);

}  // namespace tensord::server
