#include "server/commands/client/packed_folder.h"

#include <cerrno>
#include <cstdlib>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/files/image_files.h"
#include "core/jit/archive/zip_writer.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

}  // namespace

PackedFolder::PackedFolder(const std::string& path) : file_(path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return;
  std::string pattern = (fs::temp_directory_path() / "tensord_upload_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) fail_file(pattern, "made", errno);
  folder_ = pattern;
  try {
    pack(path);
  } catch (...) {
    fs::remove_all(folder_, error);
    throw;
  }
}

PackedFolder::~PackedFolder() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

void PackedFolder::pack(const std::string& path) {
  const auto images = files::open_image_folder(path);
  file_ = (folder_ / "images.zip").string();
  jit::ZipWriter zip(file_);
  for (int64_t i = 0; i < images->size(); ++i) {
    const std::string& name = images->files()[static_cast<size_t>(i)].name;
    images->read(i, [&](std::string_view bytes) { zip.add(name, bytes); });
  }
  zip.finish();
}

}  // namespace tensord::server
