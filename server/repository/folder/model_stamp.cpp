#include "server/repository/folder/model_stamp.h"

#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "server/repository/folder/layout.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxStampedFiles = 100'000;
constexpr int kMaxFolderDepth = 8;

class Stamper {
 public:
  explicit Stamper(ModelStamp& stamp) : stamp_(stamp) {}

  // Adds the entries under `path`, with `name` as their prefix. The order of entries does not matter.
  void add(const fs::path& path, const std::string& name, int depth, std::string& out) {
    struct stat info {};
    if (stat(path.c_str(), &info) != 0) return;
    if (!S_ISDIR(info.st_mode)) {
      const int64_t changed_ns = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
      stamp_.newest_ns = std::max(stamp_.newest_ns, changed_ns);
      out += concat(name, '\0', info.st_dev, ':', info.st_ino, ':', info.st_size, ':', changed_ns, '\n');
      return;
    }
    out += concat(name, '\0', "/\n");
    if (depth == kMaxFolderDepth) return;
    for (const std::string& entry : names_in(path)) add(path / entry, concat(name, '/', entry), depth + 1, out);
  }

  std::vector<std::string> names_in(const fs::path& folder) {
    std::vector<std::string> names;
    std::error_code error;
    fs::directory_iterator entries(folder, error);
    for (; entries != fs::directory_iterator(); entries.increment(error)) {
      if (++files_ > kMaxStampedFiles) {
        fail(ErrorCode::kResourceExhausted, folder.string(), ": more than ", kMaxStampedFiles, " files");
      }
      names.push_back(entries->path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  ModelStamp& stamp_;
  size_t files_ = 0;
};

}  // namespace

ModelStamp stamp_model(const fs::path& folder) {
  ModelStamp stamp;
  Stamper stamper(stamp);
  for (const std::string& name : stamper.names_in(folder)) {
    if (name.starts_with('.')) continue;
    const int64_t number = version_number(name);
    stamper.add(folder / name, name, 0, number > 0 ? stamp.versions[number] : stamp.shared);
  }
  return stamp;
}

}  // namespace tensord::server
