// MNIST and CIFAR.
#include <cstring>
#include <filesystem>

#include "core/base/error.h"
#include "core/files/idx.h"
#include "core/jit/archive/pickle.h"
#include "core/tensor/mapped_file.h"
#include "core/vision/datasets.h"

namespace tensord::vision {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSide = 32, kChannels = 3, kPixels = kChannels * kSide * kSide;
constexpr size_t kMaxPickle = size_t{1} << 30;

// The first of these paths that exists. Throws Error{kNotFound} naming the first one.
std::string first_of(const std::vector<fs::path>& paths) {
  for (const fs::path& path : paths) {
    std::error_code error;
    if (fs::exists(path, error)) return path.string();
  }
  fail(ErrorCode::kNotFound, paths.front().string(), ": cannot be opened; nor is it anywhere else where it could be");
}

void check_targets(const Tensor& targets, int64_t classes, const std::string& path) {
  for (int64_t i = 0; i < targets.numel(); ++i) {
    const int64_t target = targets.data<int64_t>()[i];
    if (target < 0 || target >= classes)
      fail(ErrorCode::kDataLoss, path, ": sample ", i, " is of class ", target, " of ", classes);
  }
}

// One CIFAR file and the place of its images in the dataset.
struct Batch {
  Tensor images, targets;
};

Batch make_batch(int64_t count) {
  return {Tensor::empty(Dims{count, kChannels, kSide, kSide}, DType::kUInt8),
          Tensor::empty(Dims{count}, DType::kInt64)};
}

// Each row has `labels` label bytes, of which the last one counts, then the pixels.
Batch read_binary(const std::string& path, int64_t labels, int64_t classes) {
  const auto file = MappedFile::open(path);
  const auto row = static_cast<size_t>(labels + kPixels);
  if (file->size() % row != 0)
    fail(ErrorCode::kDataLoss, path, ": has ", file->size(), " bytes, which are not rows of ", row);
  const Batch batch = make_batch(static_cast<int64_t>(file->size() / row));
  for (int64_t i = 0; i < batch.targets.numel(); ++i) {
    const char* from = file->data() + static_cast<size_t>(i) * row;
    batch.targets.data<int64_t>()[i] = static_cast<unsigned char>(from[labels - 1]);
    std::memcpy(batch.images.data<uint8_t>() + i * kPixels, from + labels, kPixels);
  }
  check_targets(batch.targets, classes, path);
  return batch;
}

// A dict with "data", uint8 [samples, 3072], and a list under the key `labels`.
Batch read_pickled(const std::string& path, const char* labels, int64_t classes) {
  const auto file = MappedFile::open(path);
  jit::UnpickleContext context;
  context.source = path;
  context.has_numpy = true;
  context.max_bytes = kMaxPickle;
  context.storage = [&](const std::string&) -> Storage {
    fail(ErrorCode::kDataLoss, path, ": names a storage, which only files of torch.save have");
  };
  const ops::Value value = jit::unpickle({file->data(), file->size()}, context).value;
  const auto item = [&](const char* name) -> const ops::Value& {
    if (value.is_dict()) {
      for (const auto& [key, found] : value.to_dict()->items()) {
        if (key.is_string() && key.to_string() == name) return found;
      }
    }
    fail(ErrorCode::kDataLoss, path, ": is not a dict with '", name, "'");
  };
  const ops::Value &pixels = item("data"), &numbers = item(labels);
  const bool is_right = pixels.is_strided() && pixels.to_tensor().dtype() == DType::kUInt8 &&
                        pixels.to_tensor().ndim() == 2 && pixels.to_tensor().size(1) == kPixels && numbers.is_list();
  if (!is_right) fail(ErrorCode::kDataLoss, path, ": 'data' is not uint8[n, 3072], or '", labels, "' is not a list");
  const Tensor rows = pixels.to_tensor().contiguous();
  const std::vector<ops::Value>& list = numbers.to_list()->items;
  if (list.size() != static_cast<size_t>(rows.size(0)))
    fail(ErrorCode::kDataLoss, path, ": has ", rows.size(0), " images and ", list.size(), " labels");
  const Batch batch = make_batch(rows.size(0));
  if (rows.numel() > 0) std::memcpy(batch.images.raw_data(), rows.raw_data(), rows.size_bytes());
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_int()) fail(ErrorCode::kDataLoss, path, ": a label is not an int");
    batch.targets.data<int64_t>()[i] = list[i].to_int();
  }
  check_targets(batch.targets, classes, path);
  return batch;
}

// The differences between the two datasets.
struct Cifar {
  const char *binary_folder, *pickle_folder, *labels;
  int64_t label_bytes, classes;
  std::vector<std::string> train, test;  // files of the Python version; those of the binary version end in .bin
};

Batch read_cifar(const Cifar& cifar, const fs::path& root, bool train) {
  std::vector<Batch> batches;
  int64_t count = 0;
  for (const std::string& name : train ? cifar.train : cifar.test) {
    const std::string path = first_of({root / cifar.binary_folder / (name + ".bin"), root / (name + ".bin"),
                                       root / cifar.pickle_folder / name, root / name});
    batches.push_back(path.ends_with(".bin") ? read_binary(path, cifar.label_bytes, cifar.classes)
                                             : read_pickled(path, cifar.labels, cifar.classes));
    count += batches.back().targets.numel();
  }
  const Batch all = make_batch(count);
  int64_t at = 0;
  for (const Batch& batch : batches) {
    const int64_t n = batch.targets.numel();
    if (n == 0) continue;
    std::memcpy(all.images.data<uint8_t>() + at * kPixels, batch.images.raw_data(), batch.images.size_bytes());
    std::memcpy(all.targets.data<int64_t>() + at, batch.targets.raw_data(), batch.targets.size_bytes());
    at += n;
  }
  return all;
}

}  // namespace

std::vector<Tensor> ImageTensors::get(int64_t index) const {
  check(index >= 0 && index < size(), "no sample ", index, " among ", size());
  const Tensor image = images_.as_view(Dims{images_.size(1), images_.size(2), images_.size(3)},
                                       Dims{images_.stride(1), images_.stride(2), images_.stride(3)},
                                       images_.offset() + index * images_.stride(0));
  return {transform_ ? transform_(image) : image, Tensor::scalar<int64_t>(targets_.data<int64_t>()[index])};
}

MNIST::MNIST(const std::string& root, bool train, Transform transform) : ImageTensors(std::move(transform)) {
  const auto read = [&](const char* what, int64_t rank, std::string& path) {
    const std::string name = concat(train ? "train" : "t10k", "-", what, "-idx", rank, "-ubyte");
    std::vector<fs::path> paths;
    for (const fs::path& folder : {fs::path(root), fs::path(root) / "raw", fs::path(root) / "MNIST" / "raw"}) {
      paths.push_back(folder / name);
      paths.push_back(folder / (name + ".gz"));
    }
    path = first_of(paths);
    const Tensor tensor = files::read_idx(path);
    if (tensor.dtype() != DType::kUInt8 || tensor.ndim() != rank)
      fail(ErrorCode::kDataLoss, path, ": expected uint8 of ", rank, " dimensions but it has ", describe(tensor));
    return tensor;
  };
  std::string images_path, labels_path;
  const Tensor images = read("images", 3, images_path), labels = read("labels", 1, labels_path);
  if (images.size(0) != labels.size(0))
    fail(ErrorCode::kDataLoss, labels_path, ": has ", labels.size(0), " labels for ", images.size(0), " images");
  images_ =
      images.as_view(Dims{images.size(0), 1, images.size(1), images.size(2)},
                     Dims{images.stride(0), images.size(1) * images.size(2), images.stride(1), images.stride(2)}, 0);
  targets_ = labels.to(DType::kInt64);
}

CIFAR10::CIFAR10(const std::string& root, bool train, Transform transform) : ImageTensors(std::move(transform)) {
  static const Cifar kCifar10 = {"cifar-10-batches-bin",
                                 "cifar-10-batches-py",
                                 "labels",
                                 1,
                                 10,
                                 {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"},
                                 {"test_batch"}};
  const Batch batch = read_cifar(kCifar10, root, train);
  images_ = batch.images;
  targets_ = batch.targets;
}

CIFAR100::CIFAR100(const std::string& root, bool train, Transform transform) : ImageTensors(std::move(transform)) {
  static const Cifar kCifar100 = {"cifar-100-binary", "cifar-100-python", "fine_labels", 2, 100, {"train"}, {"test"}};
  const Batch batch = read_cifar(kCifar100, root, train);
  images_ = batch.images;
  targets_ = batch.targets;
}

}  // namespace tensord::vision
