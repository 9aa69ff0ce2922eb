#pragma once

#include <filesystem>
#include <string>

namespace tensord::server {

// A copy of a file that has no name, so that nobody else can change it: a clone where the file system can, else with
// bytes of its own in the folder for temporary files. It goes when it is neither open here nor mapped.
class ArchiveCopy {
 public:
  // Throws Error: kNotFound, kResourceExhausted (no room), kUnavailable (the file changed meanwhile, or cannot be
  // read).
  explicit ArchiveCopy(const std::filesystem::path& file);
  ~ArchiveCopy();
  ArchiveCopy(const ArchiveCopy&) = delete;
  ArchiveCopy& operator=(const ArchiveCopy&) = delete;

  // Where it can be opened as long as this lives.
  const std::string& path() const { return path_; }

 private:
  int fd_ = -1;
  std::string path_;
};

}  // namespace tensord::server
