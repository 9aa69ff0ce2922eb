// The configuration that clients see: config.pbtxt, completed from the model.
#include "server/transport/calls/model_config_message.h"

#include <gtest/gtest.h>

#include "server/config/pbtxt/model_config_text.h"
#include "tests/server/fake_models.h"

namespace tensord::server::model_config_message_test {
namespace {

class ModelConfigMessageTest : public ::testing::Test {
 protected:
  ModelConfigMessageTest() {
    signature.inputs[0].datatype = DataType::kFp32;
    signature.inputs[0].shape = Dims{-1, 3};
    signature.inputs[1].is_optional = true;
    signature.outputs[0].datatype = DataType::kInt64;
    signature.file_name = "model.pt";
  }

  inference::ModelConfig shown(const std::string& text = "") {
    ModelConfig config = parse_model_config(text, "config.pbtxt");
    config.latest_versions = 3;
    signature.max_batch_size = config.max_batch_size;
    ModelVersion::Options options;
    options.workers = 2;
    const ModelVersion model("m", 1, std::make_unique<fixtures::FakeModel>(signature, fixtures::RunFn()), config,
                             options, metrics.model("m", "1"));
    return to_model_config(model);
  }

  Metrics metrics{"test"};
  Signature signature = fixtures::signature_of({"x", "y"}, {"out"});
};

TEST_F(ModelConfigMessageTest, WithoutAConfigurationTheModelTellsAll) {
  const inference::ModelConfig config = shown();
  EXPECT_EQ(config.name(), "m");
  EXPECT_EQ(config.platform(), "fake");
  EXPECT_EQ(config.backend(), "");
  EXPECT_EQ(config.default_model_filename(), "model.pt");
  EXPECT_EQ(config.version_policy().latest().num_versions(), 3);
  EXPECT_FALSE(config.has_model_transaction_policy());
  ASSERT_EQ(config.input_size(), 2);
  EXPECT_EQ(config.input(0).name(), "x");
  EXPECT_EQ(config.input(0).data_type(), inference::TYPE_FP32);
  ASSERT_EQ(config.input(0).dims_size(), 2);
  EXPECT_EQ(config.input(0).dims(0), -1);
  EXPECT_EQ(config.input(0).dims(1), 3);
  EXPECT_FALSE(config.input(0).optional());
  EXPECT_EQ(config.input(1).data_type(), inference::TYPE_INVALID);
  EXPECT_EQ(config.input(1).dims_size(), 0);
  EXPECT_TRUE(config.input(1).optional());
  ASSERT_EQ(config.output_size(), 1);
  EXPECT_EQ(config.output(0).data_type(), inference::TYPE_INT64);
  EXPECT_EQ(config.output(0).dims_size(), 0);
  ASSERT_EQ(config.instance_group_size(), 1);
  EXPECT_EQ(config.instance_group(0).name(), "m");
  EXPECT_EQ(config.instance_group(0).count(), 2);
}

TEST_F(ModelConfigMessageTest, TheBackendIsThePlatforms) {
  signature.platform = "pytorch_libtorch";
  EXPECT_EQ(shown().backend(), "pytorch");
  signature.platform = "onnxruntime_onnx";
  EXPECT_EQ(shown().backend(), "onnxruntime");
}

TEST_F(ModelConfigMessageTest, WhatIsConfiguredStays) {
  signature.inputs[0].aliases = {"first"};
  const inference::ModelConfig config = shown(R"(
    max_batch_size: 4
    default_model_filename: "other.pt"
    version_policy { all { } }
    input [ { name: "y" data_type: TYPE_INT8 dims: [ 7 ] }, { name: "first" } ]
    instance_group [ { count: 5 kind: KIND_CPU } ]
    model_transaction_policy { decoupled: true })");
  EXPECT_EQ(config.default_model_filename(), "other.pt");
  EXPECT_TRUE(config.version_policy().has_all());
  ASSERT_EQ(config.input_size(), 2);
  EXPECT_EQ(config.input(0).name(), "y");
  EXPECT_EQ(config.input(0).data_type(), inference::TYPE_INT8);
  ASSERT_EQ(config.input(0).dims_size(), 1);
  EXPECT_EQ(config.input(0).dims(0), 7);
  EXPECT_TRUE(config.input(0).optional());
  EXPECT_EQ(config.input(1).name(), "first");
  EXPECT_EQ(config.input(1).data_type(), inference::TYPE_FP32);
  ASSERT_EQ(config.input(1).dims_size(), 1);  // without the batch
  EXPECT_EQ(config.input(1).dims(0), 3);
  EXPECT_FALSE(config.input(1).optional());
  ASSERT_EQ(config.instance_group_size(), 1);
  EXPECT_EQ(config.instance_group(0).count(), 5);
  EXPECT_TRUE(config.model_transaction_policy().decoupled());
}

}  // namespace
}  // namespace tensord::server::model_config_message_test
