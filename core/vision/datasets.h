#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/nn/data/dataset.h"
#include "core/vision/image.h"
#include "core/vision/transforms.h"

// Datasets of labeled images with the interface of torchvision. A sample is an image (uint8 [channels, height, width],
// or the result of `transform`) and a target (a 0-D int64 tensor). Nothing is downloaded. Files are untrusted; errors
// start with the file's path. Several threads may call a transform at once. For nn::DataLoader.
namespace tensord::vision {

struct ImageFolderOptions {
  Transform transform = {};
  ImageOptions image = {.mode = ImageMode::kRGB};
};
// A folder with one subfolder per class, sorted by name; each class has the images of its subfolder and of nested
// folders, sorted by path. Files without an image extension are ignored. An image in an unsupported format (.bmp, .webp
// and so on) is an error, because skipping it would change the dataset.
class ImageFolder final : public nn::Dataset {
 public:
  struct Sample {
    std::string path;
    int64_t target;
  };
  // Throws Error: kNotFound (no folder), kInvalidArgument (no classes, or a class without images), kUnimplemented.
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

// A dataset of images in memory, all of the same size.
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

// Reads the four IDX files, gzipped or not, from `root`, root/raw or root/MNIST/raw. FashionMNIST and KMNIST have the
// same files.
class MNIST final : public ImageTensors {
 public:
  explicit MNIST(const std::string& root, bool train = true, Transform transform = {});
};

// Reads the binary version (cifar-10-batches-bin) or the Python version (cifar-10-batches-py), in `root` or in that
// subfolder.
class CIFAR10 final : public ImageTensors {
 public:
  explicit CIFAR10(const std::string& root, bool train = true, Transform transform = {});
};
// Reads cifar-100-binary or cifar-100-python. The targets are the 100 fine classes.
class CIFAR100 final : public ImageTensors {
 public:
  explicit CIFAR100(const std::string& root, bool train = true, Transform transform = {});
};

}  // namespace tensord::vision
