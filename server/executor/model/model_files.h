#pragma once

#include <string>

namespace tensord::server {

// The files of a model version.
struct ModelFiles {
  std::string model;
  std::string weights = {};  // see jit::LoadOptions::weights
  bool are_copied = false;   // see jit::LoadOptions::copies_files
};

}  // namespace tensord::server
