#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace tensord::server {

// Tells whether a model's files have changed: inode, size and modification time of each file.
struct ModelStamp {
  std::string shared;                       // of files that all versions use: config.pbtxt, labels, warm-up data
  std::map<int64_t, std::string> versions;  // by version
  int64_t newest_ns = 0;                    // the latest modification, on the clock of the file system

  bool operator==(const ModelStamp& other) const { return shared == other.shared && versions == other.versions; }
};

// Reads the metadata of the files in a model's folder, not their contents. Unreadable files count as missing. Throws
// Error{kResourceExhausted} for more than a hundred thousand files.
ModelStamp stamp_model(const std::filesystem::path& folder);

}  // namespace tensord::server
