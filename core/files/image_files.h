#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// Files of labeled images, in a folder or in a zip archive.
namespace tensord::files {

// The classes and files of torchvision's ImageFolder, in its order: a folder for each class, sorted by name; each class
// has the images of its folder and of nested ones, sorted by folder, then by name. Files without an image extension are
// ignored. An image in an unsupported format (.bmp, .webp and so on) is an error, because skipping it would change the
// dataset. Immutable and thread-safe; the files are untrusted.
class ImageFiles {
 public:
  struct File {
    std::string name;  // below the folder of classes: "cat/1.jpg"
    int64_t target;    // the number of its class
  };
  virtual ~ImageFiles() = default;
  const std::vector<std::string>& classes() const { return classes_; }
  const std::vector<File>& files() const { return files_; }
  int64_t size() const { return static_cast<int64_t>(files_.size()); }
  // For messages: the source's path and the file's name. REQUIRES: 0 <= index < size().
  std::string path_of(int64_t index) const;
  // Calls `use` with the file's bytes, which are valid during the call. Throws Error: kNotFound, kDataLoss.
  virtual void read(int64_t index, const std::function<void(std::string_view bytes)>& use) const = 0;

 protected:
  explicit ImageFiles(std::string source) : source_(std::move(source)) {}
  // Takes the files of a class, which follows those before it by name. Throws Error if it has none.
  void add_class(const std::string& name, std::vector<std::string> files);
  const std::string source_;

 private:
  std::vector<std::string> classes_;
  std::vector<File> files_;
};

// `within`: links that lead out of this folder are refused; empty: they are followed. Throws Error: kNotFound (no
// folder, a link to nothing), kInvalidArgument (no classes, a class without images, a link), kUnimplemented.
std::unique_ptr<const ImageFiles> open_image_folder(const std::string& root, const std::string& within = {});

// A zip archive with the folders of the classes at its top, or in the only folder there; macOS's folder __MACOSX is
// ignored. Compressed files are inflated when they are read. Throws Error as open_image_folder does, and kDataLoss (not
// an archive), kResourceExhausted (an image of more than 256 MB).
std::unique_ptr<const ImageFiles> open_image_archive(const std::string& path);

}  // namespace tensord::files
