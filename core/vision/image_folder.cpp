#include "core/base/error.h"
#include "core/files/image_files.h"
#include "core/vision/datasets.h"

namespace tensord::vision {

ImageFolder::ImageFolder(const std::string& root, ImageFolderOptions options) : options_(std::move(options)) {
  const std::unique_ptr<const files::ImageFiles> files = files::open_image_folder(root);
  classes_ = files->classes();
  for (int64_t i = 0; i < files->size(); ++i) {
    samples_.push_back({files->path_of(i), files->files()[static_cast<size_t>(i)].target});
  }
}

std::vector<Tensor> ImageFolder::get(int64_t index) const {
  check(index >= 0 && index < size(), "ImageFolder: no sample ", index, " among ", size());
  const Sample& sample = samples_[static_cast<size_t>(index)];
  Tensor image = read_image(sample.path, options_.image);
  if (options_.transform) image = options_.transform(image);
  return {image, Tensor::scalar<int64_t>(sample.target)};
}

}  // namespace tensord::vision
