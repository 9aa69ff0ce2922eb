#include "server/executor/model/image_options.h"

#include <charconv>
#include <cmath>

#include "core/base/error.h"
#include "core/base/nearest.h"

namespace tensord::server {
namespace {

constexpr const char* kImagePrefix = "image_";
constexpr int64_t kMostPixels = int64_t{1} << 28;

using vision::ColorOrder;
using vision::ResampleFilter;
using vision::Size;

[[noreturn]] void fail_value(const std::string& key, const std::string& expected, const std::string& value) {
  fail(ErrorCode::kInvalidArgument, "parameter ", key, " must be ", expected, ", got '", value, "'");
}

// The numbers of "1,2,3"; none if it is not such a list.
template <class Number>
std::vector<Number> numbers_in(const std::string& text) {
  std::vector<Number> out;
  const char *at = text.data(), *const end = at + text.size();
  while (true) {
    while (at != end && *at == ' ') ++at;
    Number number{};
    const auto [stop, error] = std::from_chars(at, end, number);
    if (error != std::errc()) return {};
    out.push_back(number);
    at = stop;
    while (at != end && *at == ' ') ++at;
    if (at == end) return out;
    if (*at++ != ',') return {};
  }
}

// One side or height and width.
std::vector<int64_t> read_sides(const std::string& key, const std::string& value) {
  std::vector<int64_t> sides = numbers_in<int64_t>(value);
  const bool is_good = (sides.size() == 1 || sides.size() == 2) && sides.front() > 0 && sides.back() > 0;
  if (!is_good) fail_value(key, "a size as 224, or a height and a width as 224,320", value);
  return sides;
}

std::vector<double> read_numbers(const std::string& key, const std::string& value) {
  std::vector<double> numbers = numbers_in<double>(value);
  bool is_good = numbers.size() == 1 || numbers.size() == 3;
  for (const double number : numbers) is_good = is_good && std::isfinite(static_cast<float>(number));
  if (!is_good) fail_value(key, "one number, or one for each channel as 0.485,0.456,0.406", value);
  return numbers;
}

template <class T>
struct Choice {
  const char* name;
  T value;
};

template <class T, size_t N>
T choose(const std::string& key, const std::string& value, const Choice<T> (&choices)[N]) {
  std::string list;
  for (const Choice<T>& choice : choices) {
    if (value == choice.name) return choice.value;
    list += concat(list.empty() ? "" : ", ", choice.name);
  }
  fail_value(key, "one of " + list, value);
}

// Names as torchvision writes them, numbers as in Hugging Face's `resample`, which are Pillow's.
constexpr Choice<ResampleFilter> kInterpolations[] = {{"nearest", ResampleFilter::kNearest},
                                                      {"box", ResampleFilter::kBox},
                                                      {"bilinear", ResampleFilter::kBilinear},
                                                      {"hamming", ResampleFilter::kHamming},
                                                      {"bicubic", ResampleFilter::kBicubic},
                                                      {"lanczos", ResampleFilter::kLanczos},
                                                      {"0", ResampleFilter::kNearest},
                                                      {"1", ResampleFilter::kLanczos},
                                                      {"2", ResampleFilter::kBilinear},
                                                      {"3", ResampleFilter::kBicubic},
                                                      {"4", ResampleFilter::kBox},
                                                      {"5", ResampleFilter::kHamming}};
constexpr Choice<ColorOrder> kOrders[] = {
    {"RGB", ColorOrder::kRGB}, {"BGR", ColorOrder::kBGR}, {"L", ColorOrder::kGray}};
constexpr Choice<DType> kDatatypes[] = {{"FP32", DType::kFloat32}, {"FP16", DType::kFloat16}, {"UINT8", DType::kUInt8}};
constexpr Choice<bool> kFlags[] = {{"true", true}, {"false", false}};

struct Layout {
  bool has_batch, channels_last;
};
constexpr Choice<Layout> kLayouts[] = {
    {"NCHW", {true, false}}, {"NHWC", {true, true}}, {"CHW", {false, false}}, {"HWC", {false, true}}};

void read_layout(const std::string& key, const std::string& value, ImageInputOptions& out) {
  const Layout layout = choose(key, value, kLayouts);
  out.has_batch_dimension = layout.has_batch;
  out.preprocess.channels_last = layout.channels_last;
}

void read_resize(const std::string& key, const std::string& value, ImageInputOptions& out) {
  const std::vector<int64_t> sides = read_sides(key, value);
  if (sides.size() == 1)
    out.preprocess.shorter_side = sides[0];
  else
    out.preprocess.resized = Size(sides[0], sides[1]);
}

void read_crop(const std::string& key, const std::string& value, ImageInputOptions& out) {
  const std::vector<int64_t> sides = read_sides(key, value);
  out.preprocess.cropped = Size(sides.front(), sides.back());
}

void read_factor(const std::string& key, const std::string& value, ImageInputOptions& out) {
  const std::vector<double> numbers = numbers_in<double>(value);
  if (numbers.size() != 1 || !std::isfinite(static_cast<float>(numbers[0]))) fail_value(key, "a number", value);
  out.preprocess.rescale_factor = numbers[0];
}

void read_max_pixels(const std::string& key, const std::string& value, ImageInputOptions& out) {
  const std::vector<int64_t> numbers = numbers_in<int64_t>(value);
  const bool is_good = numbers.size() == 1 && numbers[0] > 0 && numbers[0] <= kMostPixels;
  if (!is_good) fail_value(key, concat("a number from 1 to ", kMostPixels), value);
  out.preprocess.max_pixels = numbers[0];
}

struct ImageRule {
  ModelParameter about;
  void (*read)(const std::string& key, const std::string& value, ImageInputOptions& out);
};

constexpr ImageRule kImageRules[] = {
    {{"image_input",
      "the input that takes image files (JPEG, PNG) as BYTES of shape [images, 1] instead of numbers; default: the "
      "only input. Any parameter image_… makes it such an input"},
     [](const auto&, const auto& value, auto& out) { out.input = value; }},
    {{"image_resize_size",
      "torchvision's Resize: 256 for the shorter side, or 224,224 for height and width; default: images keep "
      "their size"},
     read_resize},
    {{"image_interpolation",
      "nearest, box, bilinear, hamming, bicubic or lanczos, or Pillow's number of it; default bilinear"},
     [](const auto& key, const auto& value, auto& out) {
       out.preprocess.filter = choose(key, value, kInterpolations);
     }},
    {{"image_crop_size", "torchvision's CenterCrop, after the resize: 224, or a height and a width; default: no crop"},
     read_crop},
    {{"image_rescale_factor", "a number that bytes are multiplied by; default: they are divided by 255"}, read_factor},
    {{"image_mean", "one number or one for each channel, subtracted after rescaling: 0.485,0.456,0.406"},
     [](const auto& key, const auto& value, auto& out) { out.preprocess.mean = read_numbers(key, value); }},
    {{"image_std", "one number or one for each channel, divided by after that: 0.229,0.224,0.225"},
     [](const auto& key, const auto& value, auto& out) { out.preprocess.std = read_numbers(key, value); }},
    {{"image_layout", "NCHW, NHWC, or without a batch dimension CHW or HWC; default NCHW"}, read_layout},
    {{"image_channel_order", "RGB, BGR or L (gray); default RGB"},
     [](const auto& key, const auto& value, auto& out) { out.preprocess.colors = choose(key, value, kOrders); }},
    {{"image_datatype", "FP32, FP16, or UINT8 for bytes as they are; default FP32"},
     [](const auto& key, const auto& value, auto& out) { out.preprocess.dtype = choose(key, value, kDatatypes); }},
    {{"image_exif_orientation", "true turns images as their EXIF data say; default false, as torchvision's"},
     [](const auto& key, const auto& value, auto& out) {
       out.preprocess.apply_exif_orientation = choose(key, value, kFlags);
     }},
    {{"image_max_pixels", "larger images are refused before they are decoded (413); default 50000000"},
     read_max_pixels},
};

void read_rule(const std::string& key, const std::string& value, ImageInputOptions& out) {
  std::vector<std::string> names;
  for (const ImageRule& rule : kImageRules) {
    if (rule.about.key == key) return rule.read(key, value, out);
    names.emplace_back(rule.about.key);
  }
  fail(ErrorCode::kInvalidArgument, "parameter ", key, " is not known", right_names(key, names));
}

}  // namespace

std::optional<ImageInputOptions> image_input_options(const ModelConfig& config) {
  std::optional<ImageInputOptions> out;
  for (const auto& [key, value] : config.parameters) {
    if (!key.starts_with(kImagePrefix)) continue;
    if (!out) out.emplace();
    read_rule(key, value, *out);
  }
  if (!out) return out;
  check(out->has_batch_dimension || config.max_batch_size == 0,
        "parameter image_layout: CHW and HWC are for models without max_batch_size");
  return out;
}

std::vector<ModelParameter> image_parameters() {
  std::vector<ModelParameter> out;
  for (const ImageRule& rule : kImageRules) out.push_back(rule.about);
  return out;
}

}  // namespace tensord::server
