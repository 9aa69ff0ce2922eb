#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace tensord::server {

// What tells whether the files of a model have changed: of each its place on the disk, size and time of change.
struct ModelStamp {
  std::string shared;                       // of what all versions use: config.pbtxt, labels, data for warm-up
  std::map<int64_t, std::string> versions;  // of each version's folder
  int64_t newest_ns = 0;                    // the last change of them, on the clock of the file system

  bool operator==(const ModelStamp& other) const { return shared == other.shared && versions == other.versions; }
};

// Looks at the files of a model's folder, never into them. What cannot be read counts as not there. Throws
// Error{kResourceExhausted} for a folder of more than a hundred thousand files.
ModelStamp stamp_model(const std::filesystem::path& folder);

}  // namespace tensord::server
