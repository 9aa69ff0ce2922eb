#include "server/training/data/image_data.h"

#include <filesystem>

#include "core/base/cancellation.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/distributed/digest.h"
#include "core/files/image_files.h"
#include "core/files/table.h"
#include "core/ops/generator.h"
#include "server/executor/model/image_options.h"
#include "server/training/jobs/job_store.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

#ifdef TENSORD_IMAGES

constexpr const char* kImages = "images";
constexpr const char* kLabels = "labels";
constexpr int64_t kMaxCheckNs = 5'000'000'000;  // of the headers when a job is created

std::unique_ptr<const files::ImageFiles> open_files(const std::string& path, const std::string& within) {
  return fs::is_directory(path) ? files::open_image_folder(path, within) : files::open_image_archive(path);
}

vision::Preprocess make_preprocess(const DataSpec& data) {
  check(!data.image_parameters.empty(), "data.image_parameters: how images become the model's input is not known; ",
        "give them, or parameters image_… in the config.pbtxt of the served model");
  ModelConfig config;
  config.parameters.insert(data.image_parameters.begin(), data.image_parameters.end());
  try {
    const std::optional<ImageInputOptions> options = image_input_options(config);
    check(options.has_value(), "none of them begins with image_");
    check(options->has_batch_dimension, "parameter image_layout: jobs train with batches; NCHW or NHWC");
    vision::Preprocess preprocess(options->preprocess);
    for (const int64_t size : preprocess.sizes()) {
      check(size >= 0, "images of one size only make a batch; give image_resize_size HEIGHT,WIDTH or image_crop_size");
    }
    return preprocess;
  } catch (const Error& error) {
    throw Error(error.code(), concat("data.image_parameters: ", error.what()));
  }
}

// Which of the model's arrays are the labels. The others must be one: the images, whatever its name.
std::vector<bool> find_labels(const JobSpec& spec, const TrainingModel& model, const std::string& path) {
  std::vector<bool> are_labels;
  std::string others;
  int images = 0;
  for (const std::string& array : model.arrays()) {
    const bool is_label = array == kLabels || (array == spec.loss.label && array != kImages);
    are_labels.push_back(is_label);
    if (is_label) continue;
    others += (others.empty() ? "" : ", ") + array;
    ++images;
  }
  check(images == 1, path, ": has ", kImages, " and ", kLabels, "; the model takes ",
        images == 0 ? "no images" : others,
        images == 0 ? "" : ": give --input ARGUMENT=labels (data.inputs) for one of them");
  return are_labels;
}

class ImageData final : public nn::Dataset {
 public:
  ImageData(const std::string& path, const std::string& within, const JobSpec& spec, const TrainingModel& model)
      : preprocess_(make_preprocess(spec.data)),
        files_(open_files(path, within)),
        are_labels_(find_labels(spec, model, path)) {
    const size_t images = static_cast<size_t>(std::ranges::find(are_labels_, false) - are_labels_.begin());
    dtype_ = model.to_model_type(model.arrays()[images], Tensor::empty(Dims{0}, preprocess_.options().dtype)).dtype();
  }

  void augment(const DataSpec& data) {
    augmentation_ = {.smallest_crop = data.random_resized_crop, .horizontal_flip = data.random_horizontal_flip};
  }

  int64_t size() const override { return files_->size(); }

  std::vector<Tensor> get(int64_t index) const override {
    ops::Generator generator(seed_of(ops::current_generator().seed(), index));
    const ops::GeneratorGuard guard(generator);
    Tensor image;
    use(index, [&](std::string_view file, const std::string& source) {
      image = preprocess_(file, source, augmentation_).to(dtype_);
    });
    const Tensor label = Tensor::scalar<int64_t>(files_->files()[static_cast<size_t>(index)].target);
    std::vector<Tensor> sample;
    for (const bool is_label : are_labels_) sample.push_back(is_label ? label : image);
    return sample;
  }

  // What the headers tell, until the time is over.
  void check_headers() const {
    const int64_t end_ns = Clock::system().now_ns() + kMaxCheckNs;
    for (int64_t i = 0; i < size() && Clock::system().now_ns() < end_ns; ++i) {
      check_work_cancelled();
      use(i, [&](std::string_view file, const std::string& source) { preprocess_.needs_of(file, source); });
    }
  }

 private:
  // So that neither the other samples of a batch nor the process that decodes it changes what is drawn.
  static uint64_t seed_of(uint64_t seed, int64_t index) {
    return seed * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(index) * 0xbf58476d1ce4e5b9;
  }

  void use(int64_t index, const std::function<void(std::string_view, const std::string&)>& with) const {
    const std::string source = files_->path_of(index);
    files_->read(index, [&](std::string_view file) { with(file, source); });
  }

  const vision::Preprocess preprocess_;
  const std::unique_ptr<const files::ImageFiles> files_;
  const std::vector<bool> are_labels_;  // of the model's arrays; the other one is the images
  DType dtype_;
  vision::Augmentation augmentation_;
};

#else

[[noreturn]] void fail_without_decoders(const std::string& path) {
  fail(ErrorCode::kUnimplemented, path, ": this tensord is built without image decoders (TENSORD_IMAGES)");
}

#endif

}  // namespace

bool is_image_data(const std::string& path) {
  std::error_code error;
  return files::extension_of(path) == "zip" || fs::is_directory(path, error);
}

std::optional<FileFingerprint> fingerprint_of_images(
    const std::string& folder, const std::string& within,
    const std::function<std::optional<FileFingerprint>(const std::string& path)>& of_file) {
  const std::unique_ptr<const files::ImageFiles> files = files::open_image_folder(folder, within);
  FileFingerprint all;
  distributed::Digest digest;
  for (int64_t i = 0; i < files->size(); ++i) {
    const std::optional<FileFingerprint> one = of_file(files->path_of(i));
    if (!one) return std::nullopt;
    all.size_bytes += one->size_bytes;
    digest.add(concat(one->sha256, "  ", files->files()[static_cast<size_t>(i)].name, "\n"));
  }
  all.sha256 = digest.finish();
  return all;
}

void link_images(const std::string& folder, const std::string& within, const fs::path& to) {
  const std::unique_ptr<const files::ImageFiles> files = files::open_image_folder(folder, within);
  for (int64_t i = 0; i < files->size(); ++i) {
    const fs::path link = to / files->files()[static_cast<size_t>(i)].name;
    make_folder(link.parent_path());
    link_or_copy(fs::canonical(files->path_of(i)), link);
  }
}

#ifdef TENSORD_IMAGES

std::unique_ptr<nn::Dataset> open_image_data(const std::string& path, const std::string& within, const JobSpec& spec,
                                             const TrainingModel& model, bool is_for_training) {
  auto data = std::make_unique<ImageData>(path, within, spec, model);
  if (is_for_training) data->augment(spec.data);
  return data;
}

void check_image_data(const std::string& path, const std::string& within, const JobSpec& spec,
                      const TrainingModel& model) {
  ImageData(path, within, spec, model).check_headers();
}

#else

std::unique_ptr<nn::Dataset> open_image_data(const std::string& path, const std::string&, const JobSpec&,
                                             const TrainingModel&, bool) {
  fail_without_decoders(path);
}
void check_image_data(const std::string& path, const std::string&, const JobSpec&, const TrainingModel&) {
  fail_without_decoders(path);
}
#endif

}  // namespace tensord::server
