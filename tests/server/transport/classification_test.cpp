#include "server/transport/infer/classification.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdio>
#include <fstream>

#include "core/base/error.h"
#include "server/executor/model/class_labels.h"

namespace tensord::server::classification_test {
namespace {

using ::testing::ElementsAre;

template <class T>
InferTensor tensor_of(DataType datatype, Dims shape, const std::vector<T>& values) {
  InferTensor out;
  out.name = "scores";
  out.datatype = datatype;
  out.shape = shape;
  out.tensor = Tensor::empty(shape, *to_dtype(datatype));
  std::copy(values.begin(), values.end(), out.tensor.data<T>());
  return out;
}

TEST(Classification, GivesTheLargestFirst) {
  const InferTensor scores = tensor_of<float>(DataType::kFp32, {4}, {0.5f, 2, -1, 1});
  const InferTensor out = classify(scores, 3, false, {});
  EXPECT_EQ(out.name, "scores");
  EXPECT_EQ(out.datatype, DataType::kBytes);
  EXPECT_EQ(out.shape, (Dims{3}));
  EXPECT_FALSE(out.tensor.defined());
  EXPECT_THAT(out.strings, ElementsAre("2.000000:1", "1.000000:3", "0.500000:0"));
}

TEST(Classification, TakesEachRowOfABatchForItself) {
  const InferTensor scores = tensor_of<int32_t>(DataType::kInt32, {2, 3}, {1, 3, 2, 9, 8, 7});
  const InferTensor out = classify(scores, 2, true, {"a", "b"});
  EXPECT_EQ(out.shape, (Dims{2, 2}));
  EXPECT_THAT(out.strings, ElementsAre("3:1:b", "2:2", "9:0:a", "8:1:b"));
  // Without a batch dimension all values are one row.
  EXPECT_THAT(classify(scores, 2, false, {}).strings, ElementsAre("9:3", "8:4"));
  // An empty label is omitted, and a single value has no rows.
  EXPECT_THAT(classify(scores, 1, true, {"", "b"}).strings, ElementsAre("3:1:b", "9:0"));
  const InferTensor one = classify(tensor_of<int32_t>(DataType::kInt32, {}, {5}), 1, true, {});
  EXPECT_EQ(one.shape, (Dims{1}));
  EXPECT_THAT(one.strings, ElementsAre("5:0"));
}

TEST(Classification, NeverGivesMoreThanThereAre) {
  const InferTensor out = classify(tensor_of<uint8_t>(DataType::kUint8, {2}, {7, 200}), int64_t{1} << 60, false, {});
  EXPECT_THAT(out.strings, ElementsAre("200:1", "7:0"));
  const InferTensor none = classify(tensor_of<float>(DataType::kFp32, {2, 0}, {}), 5, true, {});
  EXPECT_EQ(none.shape, (Dims{2, 0}));
  EXPECT_TRUE(none.strings.empty());
  const InferTensor no_rows = classify(tensor_of<float>(DataType::kFp32, {0, 4}, {}), 5, true, {});
  EXPECT_EQ(no_rows.shape, (Dims{0, 0}));
}

TEST(Classification, OrdersEqualValuesByIndexAndNanLast) {
  const float nan = std::nanf("");
  const InferTensor out = classify(tensor_of<float>(DataType::kFp32, {5}, {nan, 1, 1, -INFINITY, nan}), 5, false, {});
  EXPECT_THAT(out.strings, ElementsAre("1.000000:1", "1.000000:2", "-inf:3", "nan:0", "nan:4"));
  EXPECT_THAT(classify(tensor_of<float>(DataType::kFp32, {2}, {nan, 1}), 2, false, {}).strings,
              ElementsAre("1.000000:1", "nan:0"));
}

TEST(Classification, ReadsStridedAndHalfPrecisionOutputs) {
  InferTensor scores = tensor_of<float>(DataType::kFp32, {2, 2}, {1, 2, 3, 4});
  scores.tensor = scores.tensor.as_view(Dims{2, 2}, Dims{1, 2}, 0);  // transposed: 1 3 | 2 4
  EXPECT_THAT(classify(scores, 1, true, {}).strings, ElementsAre("3.000000:1", "4.000000:1"));
  InferTensor half = tensor_of<float>(DataType::kFp32, {2}, {0.5f, 1.5f});
  half.datatype = DataType::kFp16;
  half.tensor = half.tensor.to(DType::kFloat16);
  EXPECT_THAT(classify(half, 1, false, {}).strings, ElementsAre("1.500000:1"));
}

TEST(Classification, RefusesMoreThanAMillionElements) {
  const auto scores = [](int64_t count) {
    return tensor_of<float>(DataType::kFp32, {1, count}, std::vector<float>(static_cast<size_t>(count), 1));
  };
  EXPECT_THAT(classify(scores(1'000'000), 1, true, {}).strings, ElementsAre("1.000000:0"));
  EXPECT_THROW(classify(scores(1'000'001), 1, true, {}), Error);
}

TEST(Classification, RefusesWhatHasNoOrder) {
  InferTensor texts;
  texts.name = "words";
  texts.datatype = DataType::kBytes;
  texts.shape = {1};
  texts.strings = {"a"};
  EXPECT_THROW(classify(texts, 1, false, {}), Error);
  EXPECT_THROW(classify(tensor_of<bool>(DataType::kBool, {1}, {true}), 1, false, {}), Error);
}

TEST(ClassLabels, AreTheLinesOfTheFile) {
  std::string path = ::testing::TempDir() + "labels_XXXXXX";
  ASSERT_GE(mkstemp(path.data()), 0);
  std::ofstream(path) << "cat\r\n\ndog and mouse";
  ModelConfig config;
  config.outputs.resize(2);
  config.outputs[0].name = "scores";
  config.outputs[0].label_filename = path;
  config.outputs[1].name = "plain";
  const ClassLabels labels = read_class_labels(config);
  ASSERT_EQ(labels.size(), 1u);
  EXPECT_THAT(labels.at("scores"), ElementsAre("cat", "", "dog and mouse"));
  std::remove(path.c_str());
  EXPECT_THROW(read_class_labels(config), Error);
}

}  // namespace
}  // namespace tensord::server::classification_test
