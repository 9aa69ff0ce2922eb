#pragma once

#include <string>

namespace tensord::server {

// The files of a version.
struct ModelFiles {
  std::string model;
  std::string weights = {};  // as jit::LoadOptions::weights
  bool are_copied = false;   // as jit::LoadOptions::copies_files
};

}  // namespace tensord::server
