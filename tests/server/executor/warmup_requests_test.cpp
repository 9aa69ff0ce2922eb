// The warm-up requests of a model: those that the configuration describes, and zeros if it describes none.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "server/executor/warmup/warmup.h"
#include "tests/server/error_of.h"
#include "tests/server/fake_models.h"
#include "tests/server/fake_sink.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::warmup_requests_test {
namespace {

using fixtures::values_of;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Source = ModelConfig::Warmup::Source;

class WarmupRequestsTest : public ::testing::Test {
 protected:
  WarmupRequestsTest() {
    signature_.inputs[0].datatype = DataType::kFp32;
    signature_.inputs[0].shape = Dims{3};
    config_.warmups.resize(1);
    config_.warmups[0].name = "first";
    config_.warmups[0].inputs["x"] = {"FP32", {3}, Source::kZeros, ""};
  }

  std::string write(const std::string& bytes) const {
    const std::string file = folder_.path() / "data";
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }
  ModelConfig::Warmup::Input& x() { return config_.warmups[0].inputs["x"]; }
  std::vector<WarmupRequest> made() const { return make_warmup(signature_, config_, "m"); }
  InferTensor first() const { return made().at(0).inputs.at(0); }
  std::string refusal() const {
    return error_of([&] { made(); }).what();
  }
  void batch_of(int64_t max, std::optional<Dims> shape) {
    signature_.max_batch_size = config_.max_batch_size = max;
    signature_.inputs[0].shape = std::move(shape);
  }
  // A control input, which the server fills.
  void add_control() {
    config_.sequence_batching.emplace();
    config_.sequence_batching->controls.resize(1);
    config_.sequence_batching->controls[0].name = "START";
    config_.sequence_batching->controls[0].datatype = "FP32";
    TensorSpec& start = signature_.inputs.emplace_back();
    start.name = "START";
    start.datatype = DataType::kFp32;
    start.shape = Dims{-1};
  }

  const fixtures::TemporaryFolder folder_{"warmup"};
  Signature signature_ = fixtures::signature_of({"x"}, {"y"});
  ModelConfig config_;
};

TEST_F(WarmupRequestsTest, ZerosAndRandomNumbers) {
  EXPECT_THAT(values_of(first()), ElementsAre(0, 0, 0));
  x().source = Source::kRandom;
  EXPECT_THAT(values_of(first()), Each(::testing::AllOf(::testing::Gt(0), ::testing::Lt(1))));
  EXPECT_FALSE(first().tensor.storage()->is_writable());
  // Large tensors repeat the same random numbers.
  constexpr int64_t kDrawn = 1 << 20;
  x().dims = {2 * kDrawn + 5};
  signature_.inputs[0].shape = Dims{-1};
  const InferTensor large = first();
  const float* data = large.tensor.data<float>();
  EXPECT_NE(data[0], data[1]);
  for (const int64_t i : {int64_t{0}, int64_t{4}, kDrawn - 1}) EXPECT_EQ(data[i], data[kDrawn + i]) << i;
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(data[i], data[2 * kDrawn + i]) << i;
  x().dims = {0};
  EXPECT_THAT(values_of(first()), ElementsAre());
  x().source = Source::kZeros;
  EXPECT_THAT(values_of(first()), ElementsAre());
}

TEST_F(WarmupRequestsTest, DataOfAFile) {
  x().source = Source::kFile;
  const float numbers[] = {1, 2, 3};
  x().file = write(std::string(reinterpret_cast<const char*>(numbers), sizeof(numbers)));
  EXPECT_THAT(values_of(first()), ElementsAre(1, 2, 3));
  write(std::string(11, 'a'));
  EXPECT_THAT(refusal(), HasSubstr("has 11 bytes, expected 12"));
  x().file = folder_.path() / "missing";
  EXPECT_THAT(refusal(), HasSubstr("model_warmup 'first', input 'x': " + x().file + " cannot be read"));
  x().file = folder_.path();
  EXPECT_THAT(refusal(), HasSubstr("cannot be read"));
  // A file that yields fewer bytes than its size.
  x().file = "/sys/devices/system/cpu/online";
  if (std::filesystem::exists(x().file) && std::filesystem::file_size(x().file) == 4096) {
    x().dims = {1024};
    EXPECT_THAT(refusal(), HasSubstr("cannot be read"));
  }
  x().dims = {0};
  signature_.inputs[0].shape = Dims{0};
  x().file = write("");
  EXPECT_THAT(values_of(first()), ElementsAre());
}

TEST_F(WarmupRequestsTest, TextsOfAFile) {
  signature_.inputs[0] = {};
  signature_.inputs[0].name = "x";
  signature_.inputs[0].takes_bytes = true;
  x() = {"BYTES", {2}, Source::kFile, ""};
  const auto text = [](const std::string& value) {
    return std::string(1, static_cast<char>(value.size())) + std::string(3, '\0') + value;
  };
  x().file = write(text("one") + text(""));
  EXPECT_THAT(first().strings, ElementsAre("one", ""));
  write(text("one"));
  EXPECT_THAT(refusal(), HasSubstr("has 1 elements, expected 2"));
  for (const std::string& cut : {text("one") + "\2", text("one") + "\2" + std::string(3, '\0') + "a"}) {
    write(cut);
    EXPECT_THAT(refusal(), HasSubstr("ends within an element"));
  }
  x().file = folder_.path() / "missing";
  EXPECT_THAT(refusal(), HasSubstr("missing cannot be read"));
  x().source = Source::kZeros;
  EXPECT_THAT(first().strings, ElementsAre("", ""));
}

TEST_F(WarmupRequestsTest, TypesAndSizesThatCannotBe) {
  x().datatype = "FP8";
  EXPECT_THAT(refusal(), HasSubstr("model_warmup 'first', input 'x': data_type FP8 is not supported"));
  // The file is read only after the size check of its tensor.
  x() = {"FP32", {1 << 28}, Source::kFile, folder_.path() / "missing"};
  EXPECT_THAT(refusal(), HasSubstr("missing cannot be read"));
  x().dims[0] += 1;
  EXPECT_THAT(refusal(), HasSubstr("a warm-up has at most"));
  // A string takes more memory than its bytes.
  signature_.inputs[0].datatype = DataType::kBytes;
  x() = {"BYTES", {1 << 28}, Source::kZeros, ""};
  EXPECT_THAT(refusal(), HasSubstr("a warm-up has at most"));
}

TEST_F(WarmupRequestsTest, InputsThatTheServerFills) {
  add_control();
  batch_of(4, Dims{-1, 3});
  signature_.inputs[1].shape = Dims{-1, -1, 2};
  config_.warmups[0].batch_size = 2;
  const WarmupRequest request = made().at(0);
  EXPECT_THAT(request.input_indices, ElementsAre(0, 1));
  EXPECT_EQ(request.inputs.at(1).name, "START");
  EXPECT_EQ(request.inputs[1].shape, (Dims{2, 1, 2}));
  EXPECT_THAT(values_of(request.inputs[1]), Each(0));
  // An input that the request contains is not replaced.
  config_.warmups[0].inputs["START"] = {"FP32", {1, 2}, Source::kRandom, ""};
  const WarmupRequest whole = made().at(0);
  ASSERT_THAT(whole.inputs, SizeIs(2));
  EXPECT_THAT(values_of(whole.inputs[0]), Each(::testing::Gt(0)));
}

TEST_F(WarmupRequestsTest, InputsThatTheServerFillsWithoutABatch) {
  add_control();
  EXPECT_EQ(made().at(0).inputs.at(1).shape, (Dims{1}));
  signature_.inputs[1].shape = Dims{0, -1};
  EXPECT_EQ(made().at(0).inputs.at(1).shape, (Dims{0, 1}));
  // An input of unknown shape cannot be generated.
  signature_.inputs[1].shape.reset();
  EXPECT_THAT(refusal(), HasSubstr("missing required input(s) ['START']"));
  signature_.inputs[1].shape = Dims{1};
  signature_.inputs[1].datatype.reset();
  EXPECT_THAT(refusal(), HasSubstr("missing required input(s) ['START']"));
  // The request must supply the others.
  config_.warmups[0].inputs.clear();
  signature_.inputs[1].datatype = DataType::kFp32;
  EXPECT_THAT(refusal(), HasSubstr("missing required input(s) ['x']"));
}

TEST_F(WarmupRequestsTest, ZerosWhereNothingIsAskedFor) {
  config_.warmups.clear();
  batch_of(4, Dims{-1, 3});
  ASSERT_THAT(made(), SizeIs(2));
  EXPECT_EQ(made()[1].inputs[0].shape, (Dims{4, 3}));
  batch_of(4, Dims{-1, 0});
  EXPECT_THAT(made(), SizeIs(2));
  batch_of(4, Dims{-1, -1});
  EXPECT_THAT(made(), SizeIs(0));
  batch_of(4, std::nullopt);
  EXPECT_THAT(made(), SizeIs(0));
  batch_of(0, Dims{3});
  EXPECT_THAT(made(), SizeIs(1));
  TensorSpec& optional = signature_.inputs.emplace_back();
  optional.name = "more";
  optional.is_optional = true;
  ASSERT_THAT(made(), SizeIs(1));
  EXPECT_THAT(made()[0].inputs, SizeIs(1));
  signature_.inputs[0].is_optional = true;
  EXPECT_THAT(made(), SizeIs(0)) << "nothing that has to be there";
  signature_.inputs[0].is_optional = false;
  signature_.keeps_state = true;
  EXPECT_THAT(made(), SizeIs(0));
}

TEST_F(WarmupRequestsTest, LargeZerosAreNotMadeUnasked) {
  config_.warmups.clear();
  constexpr int64_t kMax = (256 << 20) / sizeof(float);
  batch_of(kMax, Dims{-1});
  EXPECT_THAT(made(), SizeIs(2));
  batch_of(kMax + 1, Dims{-1});
  EXPECT_THAT(made(), SizeIs(0));
  batch_of(4, Dims{-1, int64_t{1} << 40, int64_t{1} << 40});
  EXPECT_THAT(made(), SizeIs(0));
  batch_of(0, Dims{kMax});  // no batches: the whole shape is used once
  EXPECT_THAT(made(), SizeIs(1));
  batch_of(0, Dims{kMax + 1});
  EXPECT_THAT(made(), SizeIs(0));
}

TEST_F(WarmupRequestsTest, EnsemblesHaveNone) {
  config_.platform = "ensemble";
  EXPECT_THAT(refusal(), HasSubstr("ensemble 'm' has model_warmup"));
  config_.warmups.clear();
  EXPECT_THAT(made(), SizeIs(0));
}

}  // namespace
}  // namespace tensord::server::warmup_requests_test
