#pragma once

#include <filesystem>
#include <string>

namespace tensord::server {

// A file of data to upload: the given one, or if that is a folder of images, a zip archive of them in the folder for
// temporary files, which goes with this object.
class PackedFolder {
 public:
  // Throws Error that names the folder or the image that jobs cannot read.
  explicit PackedFolder(const std::string& path);
  ~PackedFolder();
  PackedFolder(const PackedFolder&) = delete;
  PackedFolder& operator=(const PackedFolder&) = delete;

  const std::string& file() const { return file_; }

 private:
  void pack(const std::string& path);

  std::filesystem::path folder_;  // empty: nothing was packed
  std::string file_;
};

}  // namespace tensord::server
