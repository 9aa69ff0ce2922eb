// From files to a model's input, compared with Pillow and torchvision's transforms of its images: all numbers are
// equal.
#include "core/vision/preprocess.h"

#include <gmock/gmock.h>

#include <functional>

#include "tests/vision/vision_cases.h"

namespace tensord::vision::preprocess_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::map<std::string, ResampleFilter> kFilters = {
    {"nearest", ResampleFilter::kNearest},   {"box", ResampleFilter::kBox},
    {"bilinear", ResampleFilter::kBilinear}, {"hamming", ResampleFilter::kHamming},
    {"bicubic", ResampleFilter::kBicubic},   {"lanczos", ResampleFilter::kLanczos}};
const std::map<std::string, DType> kTypes = {
    {"uint8", DType::kUInt8}, {"float16", DType::kFloat16}, {"float32", DType::kFloat32}};
const std::map<std::string, ColorOrder> kColors = {
    {"RGB", ColorOrder::kRGB}, {"BGR", ColorOrder::kBGR}, {"L", ColorOrder::kGray}};

std::string_view bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.raw_data()), tensor.size_bytes()};
}

Size size_of_case(const Value& value) {
  return {value.to_list()->items[0].to_int(), value.to_list()->items[1].to_int()};
}

std::vector<double> numbers_of(const Value& value) {
  std::vector<double> out;
  for (const Value& one : value.to_list()->items) out.push_back(one.to_scalar().to_double());
  return out;
}

PreprocessOptions options_of(const Value& saved) {
  PreprocessOptions out;
  if (const Value* value = find(saved, "shorter")) out.shorter_side = value->to_int();
  if (const Value* value = find(saved, "resized")) out.resized = size_of_case(*value);
  if (const Value* value = find(saved, "cropped")) out.cropped = size_of_case(*value);
  if (const Value* value = find(saved, "filter")) out.filter = kFilters.at(value->to_string());
  if (const Value* value = find(saved, "mean")) out.mean = numbers_of(*value);
  if (const Value* value = find(saved, "std")) out.std = numbers_of(*value);
  if (const Value* value = find(saved, "rescale")) out.rescale_factor = value->to_scalar().to_double();
  if (const Value* value = find(saved, "dtype")) out.dtype = kTypes.at(value->to_string());
  if (const Value* value = find(saved, "colors")) out.colors = kColors.at(value->to_string());
  if (const Value* value = find(saved, "exif")) out.apply_exif_orientation = value->to_bool();
  if (const Value* value = find(saved, "channels_last")) out.channels_last = value->to_bool();
  return out;
}

TEST(Preprocess, EqualsPillowAndTorchvision) {
  int compared = 0;
  for (const Value& saved : cases("preprocess")) {
    SCOPED_TRACE(compared++);
    const Preprocess preprocess(options_of(saved));
    const Tensor& file = item(saved, "bytes").to_tensor();
    const Tensor got = preprocess(bytes_of(file), "image");
    expect_same(got, item(saved, "expected").to_tensor());
    EXPECT_EQ(preprocess.needs_of(bytes_of(file), "image").elements, got.numel());
    const Dims sizes = preprocess.sizes();
    for (size_t i = 0; i < sizes.size(); ++i) EXPECT_TRUE(sizes[i] == -1 || sizes[i] == got.sizes()[i]);
  }
  EXPECT_GT(compared, 50);
}

std::string error_of(const std::function<void()>& call, ErrorCode* code = nullptr) {
  try {
    call();
  } catch (const Error& error) {
    if (code) *code = error.code();
    return error.what();
  }
  return "no error";
}

std::string options_error(const PreprocessOptions& options) {
  return error_of([&] { Preprocess{options}; });
}

TEST(Preprocess, OptionsAreChecked) {
  EXPECT_EQ(options_error({}), "no error");
  EXPECT_THAT(options_error({.shorter_side = 8, .resized = Size(8)}), StartsWith("resize: either"));
  EXPECT_THAT(options_error({.shorter_side = 0}), StartsWith("resize: sides must be from 1"));
  EXPECT_THAT(options_error({.resized = Size(70000, 1)}), StartsWith("resize: sides must be from 1 to 65535"));
  EXPECT_THAT(options_error({.cropped = Size(60000)}), StartsWith("crop: 60000 x 60000 is larger than"));
  EXPECT_THAT(options_error({.mean = {1, 2}}), StartsWith("mean: has 2 numbers for 3 channels"));
  EXPECT_THAT(options_error({.std = {0}}), StartsWith("std: has a zero"));
  EXPECT_THAT(options_error({.mean = {1}, .dtype = DType::kUInt8}), StartsWith("dtype: bytes"));
  EXPECT_THAT(options_error({.dtype = DType::kInt64}), StartsWith("dtype: int64"));
  EXPECT_THAT(options_error({.max_pixels = 0}), StartsWith("max_pixels"));
}

// The header alone decides, so that nothing is decoded or allocated for an image that is too large.
TEST(Preprocess, LimitsOfPixels) {
  const Value saved = cases("preprocess")[0];  // 457 x 301
  const std::string_view file = bytes_of(item(saved, "bytes").to_tensor());
  const std::string header(file.substr(0, 700));
  ErrorCode code{};
  const auto refusal = [&](PreprocessOptions options, std::string_view bytes) {
    const Preprocess preprocess(std::move(options));
    const std::string counted = error_of([&] { preprocess.needs_of(bytes, "image"); });
    const std::string decoded = error_of([&] { preprocess(bytes, "image"); }, &code);
    if (counted != "no error") {
      EXPECT_EQ(counted, decoded);
    }
    return decoded;
  };
  EXPECT_EQ(refusal({.max_pixels = 457 * 301}, file), "no error");
  EXPECT_THAT(refusal({.max_pixels = 457 * 301 - 1}, header), HasSubstr("457 x 301 pixels; the limit is 137556"));
  EXPECT_EQ(code, ErrorCode::kOutOfRange);
  // A long image would become huge by its shorter side.
  EXPECT_THAT(refusal({.shorter_side = 370, .max_pixels = 200'000}, file), HasSubstr("takes 207570 pixels"));
  EXPECT_EQ(code, ErrorCode::kOutOfRange);
  // As would the image between the passes: 600 wide and 301 high.
  EXPECT_THAT(refusal({.resized = Size(1, 600), .max_pixels = 170'000}, file), HasSubstr("takes 180600 pixels"));
  EXPECT_THAT(refusal({}, file.substr(0, 5000)), HasSubstr("truncated"));
  EXPECT_EQ(code, ErrorCode::kDataLoss);
  EXPECT_THAT(refusal({}, ""), HasSubstr("neither a JPEG nor a PNG"));
  EXPECT_THAT(refusal({}, "\xff\xd8\xff"), StartsWith("image: damaged JPEG"));
}

}  // namespace
}  // namespace tensord::vision::preprocess_test
