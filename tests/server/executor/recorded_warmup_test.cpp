#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "server/executor/requests/recorded_requests.h"
#include "server/executor/warmup/warmup.h"
#include "tests/server/fake_models.h"

namespace tensord::server::recorded_warmup_test {
namespace {

using ::testing::HasSubstr;

class RecordedWarmupTest : public ::testing::Test {
 protected:
  RecordedWarmupTest() {
    file_ = std::filesystem::temp_directory_path() / concat("tensord_warmup_", getpid());
    signature_.max_batch_size = 4;
    signature_.inputs[0].datatype = DataType::kFp32;
    signature_.inputs[0].shape = Dims{-1, 3};
  }
  ~RecordedWarmupTest() override { std::filesystem::remove(file_); }

  static InferTensor rows(int64_t count, float value) {
    InferTensor out;
    out.name = "x";
    out.shape = {count, 3};
    out.tensor = Tensor::empty(out.shape, DType::kFloat32);
    std::fill_n(out.tensor.data<float>(), count * 3, value);
    return out;
  }

  void write(const std::vector<InferTensor>& inputs) const {
    std::ofstream out(file_, std::ios::binary);
    out << recorded_requests_magic();
    for (const InferTensor& input : inputs) {
      RecordWriter writer("m", "1", "id", 0);
      writer.add_input(input);
      out << writer.finish();
    }
  }

  ModelConfig config() const {
    ModelConfig config;
    config.max_batch_size = 4;
    config.warmups.emplace_back();
    config.warmups[0].name = "captured";
    config.warmups[0].recorded_file = file_.string();
    return config;
  }

  std::filesystem::path file_;
  Signature signature_ = fixtures::signature_of({"x"}, {"y"});
};

TEST_F(RecordedWarmupTest, RunsWhatWasRecorded) {
  write({rows(2, 1.5f), rows(4, 2.5f)});
  const std::vector<WarmupRequest> requests = make_warmup(signature_, config(), "m");
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].batch_size, 2);
  EXPECT_EQ(requests[1].batch_size, 4);
  EXPECT_EQ(requests[1].inputs[0].tensor.data<float>()[11], 2.5f);
  EXPECT_FALSE(requests[1].inputs[0].tensor.storage()->is_writable());
  EXPECT_TRUE(requests[0].is_configured);
}

TEST_F(RecordedWarmupTest, UnsignedNumbersReachTheModelAsRequestsDo) {
  signature_.inputs[0].datatype = DataType::kUint16;
  InferTensor sent;
  sent.name = "x";
  sent.datatype = DataType::kInt32;
  sent.shape = {1, 3};
  sent.tensor = Tensor::empty(sent.shape, DType::kInt32);
  for (int i = 0; i < 3; ++i) sent.tensor.data<int32_t>()[i] = 65533 + i;
  {
    RecordWriter writer("m", "1", "id", 0);
    writer.add_input(sent, DataType::kUint16);
    std::ofstream(file_, std::ios::binary) << recorded_requests_magic() << writer.finish();
  }
  const std::vector<WarmupRequest> recorded = make_warmup(signature_, config(), "m");
  EXPECT_EQ(recorded.at(0).inputs[0].datatype, DataType::kInt32);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(recorded[0].inputs[0].tensor.data<int32_t>()[i], 65533 + i);
  // Zeros are generated for such inputs too.
  ModelConfig plain;
  plain.max_batch_size = 4;
  const std::vector<WarmupRequest> zeros = make_warmup(signature_, plain, "m");
  ASSERT_FALSE(zeros.empty());
  EXPECT_EQ(zeros[0].inputs[0].tensor.dtype(), DType::kInt32);
}

TEST_F(RecordedWarmupTest, SaysWhichRequestDoesNotFit) {
  write({rows(2, 1), rows(5, 1)});
  try {
    make_warmup(signature_, config(), "m");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'captured, request 1': inference request batch-size must be <= 4"));
  }
}

TEST_F(RecordedWarmupTest, RefusesOtherFiles) {
  std::ofstream(file_) << "no requests in here";
  EXPECT_THROW(make_warmup(signature_, config(), "m"), Error);
}

TEST_F(RecordedWarmupTest, TheBatchIsThatOfTheFirstInput) {
  RecordWriter nothing("m", "1", "id", 0);
  std::ofstream(file_, std::ios::binary) << recorded_requests_magic() << nothing.finish();
  signature_.inputs[0].is_optional = true;
  EXPECT_EQ(make_warmup(signature_, config(), "m").at(0).batch_size, 1);
  write({rows(2, 1)});
  EXPECT_EQ(make_warmup(signature_, config(), "m").at(0).batch_size, 2);
  signature_.max_batch_size = 0;
  EXPECT_EQ(make_warmup(signature_, config(), "m").at(0).batch_size, 1);
}

}  // namespace
}  // namespace tensord::server::recorded_warmup_test
