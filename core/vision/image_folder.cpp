#include <algorithm>
#include <array>
#include <filesystem>

#include "core/base/error.h"
#include "core/files/table.h"
#include "core/vision/datasets.h"

namespace tensord::vision {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxSamples = size_t{1} << 27;

template <size_t N>
bool is_one_of(const std::string& extension, const std::array<std::string_view, N>& known) {
  return std::find(known.begin(), known.end(), extension) != known.end();
}

// The entries of a folder, sorted by name. Throws Error{kNotFound}.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> out;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) out.push_back(*at);
  if (error) fail(ErrorCode::kNotFound, folder.string(), ": cannot be read: ", error.message());
  std::sort(out.begin(), out.end());
  return out;
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// Collects the files of a folder, then those of its subfolders, in the order of os.walk() with sorted names. `above`
// has the resolved parent folders, to detect cycles of links.
void collect(const fs::path& folder, int64_t target, std::vector<fs::path>& above,
             std::vector<ImageFolder::Sample>& samples) {
  static constexpr std::array<std::string_view, 3> kRead = {"jpg", "jpeg", "png"};
  static constexpr std::array<std::string_view, 6> kOthers = {"ppm", "bmp", "pgm", "tif", "tiff", "webp"};
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error) fail(ErrorCode::kNotFound, folder.string(), ": cannot be read: ", error.message());
  check(above.size() < kMaxDepth, folder.string(), ": folders are nested more than ", kMaxDepth, " deep");
  check(std::find(above.begin(), above.end(), real) == above.end(), folder.string(), ": links lead in a circle");
  above.push_back(real);
  std::vector<fs::path> folders;
  for (const fs::path& path : entries_of(folder)) {
    if (is_folder(path)) {
      folders.push_back(path);
      continue;
    }
    const std::string extension = files::extension_of(path.string());
    if (is_one_of(extension, kOthers))
      fail(ErrorCode::kUnimplemented, path.string(), ": pictures of this kind are not read; .jpg, .jpeg and .png are");
    if (!is_one_of(extension, kRead)) continue;
    check(samples.size() < kMaxSamples, folder.string(), ": more than ", kMaxSamples, " pictures");
    samples.push_back({path.string(), target});
  }
  for (const fs::path& inner : folders) collect(inner, target, above, samples);
  above.pop_back();
}

}  // namespace

ImageFolder::ImageFolder(const std::string& root, ImageFolderOptions options) : options_(std::move(options)) {
  for (const fs::path& path : entries_of(root)) {
    if (!is_folder(path)) continue;
    const size_t before = samples_.size();
    std::vector<fs::path> above;
    collect(path, static_cast<int64_t>(classes_.size()), above, samples_);
    check(samples_.size() > before, path.string(), ": the class has no pictures; .jpg, .jpeg and .png are read");
    classes_.push_back(path.filename().string());
  }
  check(!classes_.empty(), root, ": has no folders of classes");
}

std::vector<Tensor> ImageFolder::get(int64_t index) const {
  check(index >= 0 && index < size(), "ImageFolder: no sample ", index, " among ", size());
  const Sample& sample = samples_[static_cast<size_t>(index)];
  Tensor image = read_image(sample.path, options_.image);
  if (options_.transform) image = options_.transform(image);
  return {image, Tensor::scalar<int64_t>(sample.target)};
}

}  // namespace tensord::vision
