#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/nn/data/dataset.h"
#include "core/vision/image.h"
#include "core/vision/transforms.h"

// Pictures with the number of their class, as torchvision's datasets: each sample is the image, uint8 [channels,
// height, width] or what `transform` makes of it, and a target of int64 without dimensions. Nothing is downloaded.
// Files are taken to be hostile; all throw Error that starts with the file's path. Transforms may be called from
// several threads at once. For nn::DataLoader.
namespace tensord::vision {

struct ImageFolderOptions {
  Transform transform = {};
  ImageOptions image = {.mode = ImageMode::kRGB};
};
// A folder with a folder for each class, in the order of their names; pictures in these, and in folders inside, in the
// order of their paths. Files that are no pictures by their extension are passed over; pictures of kinds that are
// not read (.bmp, .webp and so on) are an error, since leaving them out would make it another dataset.
class ImageFolder final : public nn::Dataset {
 public:
  struct Sample {
    std::string path;
    int64_t target;
  };
  // Throws Error: kNotFound (no folder), kInvalidArgument (no classes, or one without pictures), kUnimplemented.
  explicit ImageFolder(const std::string& root, ImageFolderOptions options = {});
  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  std::vector<Tensor> get(int64_t index) const override;
  const std::vector<std::string>& classes() const { return classes_; }
  const std::vector<Sample>& samples() const { return samples_; }

 private:
  const ImageFolderOptions options_;
  std::vector<std::string> classes_;
  std::vector<Sample> samples_;
};

// Pictures that are in memory, all of one size.
class ImageTensors : public nn::Dataset {
 public:
  int64_t size() const override { return targets_.size(0); }
  std::vector<Tensor> get(int64_t index) const override;
  const Tensor& images() const { return images_; }    // uint8 [samples, channels, height, width]
  const Tensor& targets() const { return targets_; }  // int64 [samples]

 protected:
  explicit ImageTensors(Transform transform) : transform_(std::move(transform)) {}
  Tensor images_, targets_;

 private:
  const Transform transform_;
};

// The four files of idx format, packed by gzip or not, in `root`, root/raw or root/MNIST/raw. FashionMNIST's and
// KMNIST's are alike.
class MNIST final : public ImageTensors {
 public:
  explicit MNIST(const std::string& root, bool train = true, Transform transform = {});
};

// The binary version (cifar-10-batches-bin) or Python's (cifar-10-batches-py), in `root` or in that folder of it.
class CIFAR10 final : public ImageTensors {
 public:
  explicit CIFAR10(const std::string& root, bool train = true, Transform transform = {});
};
// cifar-100-binary or cifar-100-python; targets are the 100 fine classes.
class CIFAR100 final : public ImageTensors {
 public:
  explicit CIFAR100(const std::string& root, bool train = true, Transform transform = {});
};

}  // namespace tensord::vision
