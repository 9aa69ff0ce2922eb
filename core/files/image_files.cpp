#include "core/files/image_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "core/base/error.h"
#include "core/files/table.h"
#include "core/jit/archive/zip.h"
#include "core/tensor/mapped_file.h"

namespace tensord::files {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxDepth = 64;
constexpr int64_t kMaxFiles = int64_t{1} << 27;
constexpr uint64_t kMaxFileBytes = uint64_t{256} << 20;
constexpr uint64_t kMaxArchiveBytes = uint64_t{1} << 50;  // of all files, which are inflated one by one

// Whether the name is that of an image that is read. Throws for one that torchvision reads and this does not.
bool is_image(const std::string& name, const std::string& path) {
  static constexpr std::array<std::string_view, 3> kRead = {"jpg", "jpeg", "png"};
  static constexpr std::array<std::string_view, 6> kOthers = {"ppm", "bmp", "pgm", "tif", "tiff", "webp"};
  const std::string extension = extension_of(name);
  if (std::ranges::find(kOthers, extension) != kOthers.end())
    fail(ErrorCode::kUnimplemented, path, ": images of this kind are not read; .jpg, .jpeg and .png are");
  return std::ranges::find(kRead, extension) != kRead.end();
}

// torchvision sorts folders as texts, so "a-b" lies between "a" and "a/c".
bool comes_before(const std::string& one, const std::string& other) {
  const auto folder = [](std::string_view name) { return name.substr(0, std::min(name.rfind('/'), name.size())); };
  return std::pair(folder(one), std::string_view(one)) < std::pair(folder(other), std::string_view(other));
}

class Folder final : public ImageFiles {
 public:
  Folder(const std::string& root, const std::string& within) : ImageFiles(root), within_(within) {
    for (const fs::directory_entry& entry : entries_of(root)) {
      if (!is_folder(entry)) continue;
      const std::string name = entry.path().filename().string();
      std::vector<fs::path> above;
      std::vector<std::string> files;
      collect(entry.path(), name, above, files);
      add_class(name, std::move(files));
    }
    check(!classes().empty(), root, ": has no folders of classes");
  }

  void read(int64_t index, const std::function<void(std::string_view)>& use) const override {
    const auto file = MappedFile::open(path_of(index));
    use({file->data(), file->size()});
  }

 private:
  // Sorted by name. Throws Error{kNotFound}.
  static std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
    std::error_code error;
    std::vector<fs::directory_entry> out;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) out.push_back(*at);
    if (error) fail(ErrorCode::kNotFound, folder.string(), ": cannot be read: ", error.message());
    std::ranges::sort(out, {}, [](const auto& entry) { return entry.path().native(); });
    return out;
  }

  bool is_folder(const fs::directory_entry& entry) const {
    std::error_code error;
    if (!within_.empty() && entry.is_symlink(error)) {
      const fs::path real = fs::canonical(entry.path(), error);
      if (error) fail(ErrorCode::kNotFound, entry.path().string(), ": is a link that leads nowhere: ", error.message());
      const fs::path inside = fs::canonical(within_, error);
      const bool stays = !error && std::ranges::mismatch(inside, real).in1 == inside.end();
      check(stays, entry.path().string(), ": is a link that leads out of the folder of data");
    }
    return entry.is_directory(error);
  }

  // `above` has the resolved parent folders, to detect cycles of links.
  void collect(const fs::path& folder, const std::string& name, std::vector<fs::path>& above,
               std::vector<std::string>& files) {
    std::error_code error;
    const fs::path real = fs::canonical(folder, error);
    if (error) fail(ErrorCode::kNotFound, folder.string(), ": cannot be read: ", error.message());
    check(above.size() < kMaxDepth, folder.string(), ": folders are nested more than ", kMaxDepth, " deep");
    check(std::ranges::find(above, real) == above.end(), folder.string(), ": links lead in a circle");
    above.push_back(real);
    for (const fs::directory_entry& entry : entries_of(folder)) {
      std::string inner = concat(name, "/", entry.path().filename().string());
      if (is_folder(entry)) {
        collect(entry.path(), inner, above, files);
      } else if (is_image(inner, entry.path().string())) {
        check(entry.is_regular_file(error), entry.path().string(), ": is not a regular file");
        check(size() + std::ssize(files) < kMaxFiles, folder.string(), ": more than ", kMaxFiles, " images in all");
        files.push_back(std::move(inner));
      }
    }
    above.pop_back();
  }

  const std::string within_;
};

class Archive final : public ImageFiles {
 public:
  explicit Archive(const std::string& path)
      : ImageFiles(path),
        zip_(jit::ZipArchive::open(path, {.max_inflated_bytes = kMaxArchiveBytes, .keeps_root = true})) {
    std::map<std::string, std::vector<std::string>> classes;
    root_ = find_root();
    for (const jit::ZipArchive::Entry& entry : zip_->entries()) {
      if (is_ignored(entry.name) || !entry.name.starts_with(root_)) continue;
      const std::string name = entry.name.substr(root_.size());
      const size_t slash = name.find('/');
      if (slash == std::string::npos) continue;
      std::vector<std::string>& files = classes[name.substr(0, slash)];
      if (name.ends_with('/') || !is_image(name, concat(path, "/", entry.name))) continue;
      if (entry.size > kMaxFileBytes) {
        fail(ErrorCode::kResourceExhausted, path, "/", entry.name, ": an image of ", entry.size, " bytes; at most ",
             kMaxFileBytes, " are read");
      }
      files.push_back(name);
    }
    check(!classes.empty(), path, ": has no folders of classes");
    for (auto& [name, files] : classes) add_class(name, std::move(files));
  }

  void read(int64_t index, const std::function<void(std::string_view)>& use) const override {
    const jit::ZipArchive::Entry& entry = zip_->at(root_ + files()[static_cast<size_t>(index)].name);
    if (entry.size == 0) return use({});
    const Storage bytes = zip_->storage(entry);  // which counts as memory of the thread's owner
    use({static_cast<const char*>(bytes->data()), entry.size});
  }

 private:
  static bool is_ignored(const std::string& name) { return name.starts_with("__MACOSX/"); }

  // "flowers/" if everything is in this folder and nothing but folders is in it; otherwise "".
  std::string find_root() const {
    std::string root;
    for (const jit::ZipArchive::Entry& entry : zip_->entries()) {
      if (is_ignored(entry.name)) continue;
      const size_t slash = entry.name.find('/');
      if (slash == std::string::npos) continue;
      if (root.empty()) root = entry.name.substr(0, slash + 1);
      const bool is_file_in_it = entry.name.find('/', slash + 1) == std::string::npos && !entry.name.ends_with('/');
      if (!entry.name.starts_with(root) || (is_file_in_it && is_image(entry.name, entry.name))) return {};
    }
    return root;
  }

  const std::shared_ptr<jit::ZipArchive> zip_;
  std::string root_;
};

}  // namespace

std::string ImageFiles::path_of(int64_t index) const {
  return concat(source_, "/", files_.at(static_cast<size_t>(index)).name);
}

void ImageFiles::add_class(const std::string& name, std::vector<std::string> files) {
  check(!files.empty(), source_, "/", name, ": the class has no images; .jpg, .jpeg and .png are read");
  std::ranges::sort(files, comes_before);
  for (std::string& file : files) files_.push_back({std::move(file), static_cast<int64_t>(classes_.size())});
  classes_.push_back(name);
}

std::unique_ptr<const ImageFiles> open_image_folder(const std::string& root, const std::string& within) {
  return std::make_unique<Folder>(root, within);
}

std::unique_ptr<const ImageFiles> open_image_archive(const std::string& path) {
  return std::make_unique<Archive>(path);
}

}  // namespace tensord::files
