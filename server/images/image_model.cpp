#include "server/images/image_model.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "core/vision/preprocess.h"
#include "server/executor/model/encoded_input.h"
#include "server/executor/model/image_options.h"
#include "server/executor/model/torchscript_model.h"
#include "server/executor/requests/status.h"

namespace tensord::server {
namespace {

// A PNG of one black pixel.
constexpr unsigned char kExample[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00,
    0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00, 0x00, 0x3a, 0x7e, 0x9b, 0x55, 0x00,
    0x00, 0x00, 0x0a, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0x60, 0x00, 0x00, 0x00, 0x02, 0x00, 0x01,
    0x48, 0xaf, 0xa4, 0x71, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};

// A request's image that cannot be used is the client's error, whatever is wrong with the file.
template <class Use>
auto use_image(const Use& use) {
  try {
    return use();
  } catch (const Error& error) {
    switch (error.code()) {
      case ErrorCode::kOutOfRange: throw TooLargeError(ErrorCode::kInvalidArgument, error.what());
      case ErrorCode::kUnimplemented:
      case ErrorCode::kDataLoss: throw Error(ErrorCode::kInvalidArgument, error.what());
      default: throw;
    }
  }
}

class ImageInput final : public EncodedInput {
 public:
  explicit ImageInput(vision::PreprocessOptions options) : preprocess_(std::move(options)) {}

  const vision::Preprocess& preprocess() const { return preprocess_; }
  bool has_fixed_size() const { return std::ranges::count(preprocess_.sizes(), -1) == 0; }

  Needs needs_of(std::string_view file, const std::string& source) const override {
    return use_image([&] {
      const vision::Preprocess::Needs needs = preprocess_.needs_of(file, source);
      return Needs{static_cast<uint64_t>(needs.elements) * size_of(preprocess_.options().dtype), needs.decoder_bytes};
    });
  }
  std::string_view example() const override {
    return has_fixed_size() ? std::string_view(reinterpret_cast<const char*>(kExample), sizeof kExample)
                            : std::string_view();
  }
  Tensor decode(std::string_view file, const std::string& source) const {
    return use_image([&] { return preprocess_(file, source); });
  }

 private:
  const vision::Preprocess preprocess_;
};

// Decodes the images of an input: [images, …], or the only image without a batch dimension.
Tensor decode_images(const InferTensor& input, const ImageInput& images, bool has_batch,
                     const std::function<bool()>& is_cancelled) {
  check(has_batch || input.strings.size() == 1, "input '", input.name, "': takes one image, got ",
        input.strings.size());
  Tensor out;
  for (size_t i = 0; i < input.strings.size(); ++i) {
    if (is_cancelled()) fail(ErrorCode::kCancelled, "the request was cancelled");
    const Tensor image = images.decode(input.strings[i], concat("input '", input.name, "', image ", i));
    if (!has_batch) return image;
    if (!out.defined()) {
      Dims sizes{static_cast<int64_t>(input.strings.size())};
      for (const int64_t size : image.sizes()) sizes.push_back(size);
      out = Tensor::empty(sizes, image.dtype());
    }
    const bool is_same = std::ranges::equal(image.sizes(), std::span(out.sizes()).subspan(1));
    check(is_same, "input '", input.name, "', image ", i, ": is ", describe(image), ", and the images before it made ",
          describe(out), "; with image_resize_size HEIGHT,WIDTH or image_crop_size all have one size");
    std::memcpy(static_cast<char*>(out.raw_data()) + i * image.size_bytes(), image.raw_data(), image.size_bytes());
  }
  check(out.defined(), "input '", input.name, "': has no image");
  return out;
}

class ImageSession final : public ModelSession {
 public:
  ImageSession(std::unique_ptr<ModelSession> session, const ImageInput& images, size_t index, bool has_batch)
      : session_(std::move(session)), images_(images), index_(index), has_batch_(has_batch) {}

  RunResult run(std::span<const InferTensor* const> inputs, const RunOptions& options) override {
    std::vector<const InferTensor*> decoded(inputs.begin(), inputs.end());
    InferTensor tensor;
    if (const InferTensor* given = inputs[index_]) {
      tensor.name = given->name;
      tensor.tensor = decode_images(*given, images_, has_batch_, options.is_cancelled);
      tensor.datatype = from_dtype(tensor.tensor.dtype());
      tensor.shape = tensor.tensor.sizes();
      tensor.is_own = true;
      decoded[index_] = &tensor;
    }
    return session_->run(decoded, options);
  }

 private:
  const std::unique_ptr<ModelSession> session_;
  const ImageInput& images_;
  const size_t index_;
  const bool has_batch_;
};

class ImageModel final : public Model {
 public:
  ImageModel(std::unique_ptr<const Model> model, std::shared_ptr<const ImageInput> images, size_t index, bool has_batch)
      : model_(std::move(model)),
        images_(std::move(images)),
        index_(index),
        has_batch_(has_batch),
        signature_(model_->signature()) {
    TensorSpec& spec = signature_.inputs[index_];
    spec.datatype = DataType::kBytes;
    spec.shape = has_batch_ ? Dims{-1, 1} : Dims{1};
    spec.reshape.reset();
    spec.takes_bytes = true;
    spec.is_written = false;
    spec.known = {};
    spec.encoded = images_;
    signature_.has_bounded_work = false;  // decoding takes as long as the image is large
    set_precision(model_->precision());
  }

  const Signature& signature() const override { return signature_; }
  std::vector<std::string> warnings() const override { return model_->warnings(); }
  std::unique_ptr<ModelSession> make_session() const override { return wrap(model_->make_session()); }
  std::unique_ptr<ModelSession> make_session_of(size_t instance) const override {
    return wrap(model_->make_session_of(instance));
  }
  void release_unused_memory() const override { model_->release_unused_memory(); }
  PlanCounts plan_counts() const override { return model_->plan_counts(); }

 private:
  std::unique_ptr<ModelSession> wrap(std::unique_ptr<ModelSession> session) const {
    return std::make_unique<ImageSession>(std::move(session), *images_, index_, has_batch_);
  }

  const std::unique_ptr<const Model> model_;
  const std::shared_ptr<const ImageInput> images_;
  const size_t index_;
  const bool has_batch_;
  Signature signature_;
};

// The configuration of the model behind the images: what clients send as files, it takes as numbers.
ModelConfig config_behind(const ModelConfig& config, const ImageInputOptions& options, const ImageInput& images) {
  ModelConfig out = config;
  out.warmups.clear();  // these have files; `precision: auto` measures with numbers
  if (out.inputs.empty()) return out;
  const auto found = std::ranges::find_if(out.inputs, [&](const ModelConfig::TensorConfig& input) {
    return options.input.empty() ? out.inputs.size() == 1 : input.name == options.input;
  });
  check(found != out.inputs.end(), "parameter image_input: ",
        options.input.empty() ? "the model has several inputs; say which one takes images"
                              : concat("config.pbtxt has no input '", options.input, "'"));
  const bool is_string = found->datatype.empty() || found->datatype == "BYTES";
  const std::vector<int64_t> dims =
      config.max_batch_size > 0 || !options.has_batch_dimension ? std::vector<int64_t>{1} : std::vector<int64_t>{-1, 1};
  check(is_string && (!found->has_dims || found->dims == dims) && !found->has_reshape, "input '", found->name,
        "' takes images (parameters image_…): it must have data_type TYPE_STRING, dims [ ",
        dims.size() == 1 ? "" : "-1, ", "1 ] and no reshape");
  found->datatype = name_of(from_dtype(images.preprocess().options().dtype));
  found->dims.clear();
  if (config.max_batch_size == 0 && options.has_batch_dimension) found->dims.push_back(-1);
  for (const int64_t size : images.preprocess().sizes()) found->dims.push_back(size);
  found->has_dims = true;
  return out;
}

size_t find_image_input(const Signature& signature, const ImageInputOptions& options) {
  check(!options.input.empty() || signature.inputs.size() == 1, "parameter image_input: the model has ",
        signature.inputs.size(), " inputs; say which one takes images");
  const auto found = std::ranges::find_if(signature.inputs, [&](const TensorSpec& spec) {
    return options.input.empty() || spec.answers_to(options.input);
  });
  check(found != signature.inputs.end(), "parameter image_input: the model has no input '", options.input, "'");
  check(!found->takes_bytes, "parameter image_input: input '", found->name, "' takes strings, not numbers");
  return static_cast<size_t>(found - signature.inputs.begin());
}

}  // namespace

std::unique_ptr<const Model> load_image_model(const ModelFiles& files, const ModelConfig& config,
                                              const EngineOptions& defaults) {
  const std::optional<ImageInputOptions> options = image_input_options(config);
  if (!options) return load_torchscript_model(files, config, defaults);
  std::shared_ptr<const ImageInput> images;
  try {
    images = std::make_shared<const ImageInput>(options->preprocess);
  } catch (const Error& error) {
    throw Error(error.code(), concat("parameters image_…: ", error.what()));
  }
  check(!config.dynamic_batching || images->has_fixed_size(),
        "dynamic_batching: images of one size only share a batch; ",
        "give parameter image_resize_size HEIGHT,WIDTH or image_crop_size");
  std::unique_ptr<const Model> model =
      load_torchscript_model(files, config_behind(config, *options, *images), defaults);
  const size_t index = find_image_input(model->signature(), *options);
  return std::make_unique<ImageModel>(std::move(model), std::move(images), index, options->has_batch_dimension);
}

}  // namespace tensord::server
