#include <gtest/gtest.h>

#include "core/base/error.h"
#include "protos/model_config_text.h"

namespace tensord::server {
namespace {

TEST(ModelConfig, ReadsARealTritonConfig) {
  const ModelConfig config = parse_model_config(R"(
    name: "resnet"
    platform: "pytorch_libtorch"
    max_batch_size: 8
    input [
      { name: "INPUT__0" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 224, 224 ] }
    ]
    output { name: "scores" data_type: TYPE_FP32 dims: [ 1000 ] label_filename: "labels.txt" }
    instance_group [ { count: 2 kind: KIND_CPU }, { count: 1 } ]
    version_policy: { specific { versions: [ 1, 3 ] } }
    dynamic_batching { default_queue_policy { max_queue_size: 7 default_timeout_microseconds: 1500 } }
    parameters: { key: "INFERENCE_MODE" value: { string_value: "true" } }
  )",
                                                "config.pbtxt");
  EXPECT_EQ(config.name, "resnet");
  EXPECT_EQ(config.max_batch_size, 8);
  ASSERT_EQ(config.inputs.size(), 1u);
  EXPECT_EQ(config.inputs[0].name, "INPUT__0");
  EXPECT_EQ(config.inputs[0].datatype, "FP32");
  EXPECT_EQ(config.inputs[0].dims, (std::vector<int64_t>{3, 224, 224}));
  ASSERT_EQ(config.outputs.size(), 1u);
  EXPECT_EQ(config.outputs[0].name, "scores");
  EXPECT_EQ(config.workers, 3);
  EXPECT_EQ(config.version_policy, ModelConfig::VersionPolicy::kSpecific);
  EXPECT_EQ(config.specific_versions, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(config.max_queue_size, 7u);
  EXPECT_EQ(config.default_timeout_us, 1500u);
  EXPECT_EQ(config.parameters.at("INFERENCE_MODE"), "true");
}

TEST(ModelConfig, SkipsUnknownFields) {
  const ModelConfig config = parse_model_config(R"(
    name: "m"
    optimization { cuda { graphs: true } execution_accelerators { gpu_execution_accelerator : [ { name : "x" } ] } }
    model_warmup { name: "w" batch_size: 1 }
    response_cache { enable: true }
    max_batch_size: 4
  )",
                                                "config.pbtxt");
  EXPECT_EQ(config.name, "m");
  EXPECT_EQ(config.max_batch_size, 4);
}

TEST(ModelConfig, EmptyIsAllDefaults) {
  const ModelConfig config = parse_model_config("", "config.pbtxt");
  EXPECT_EQ(config.latest_versions, 1u);
  EXPECT_EQ(config.workers, 0);
  EXPECT_TRUE(config.inputs.empty());
}

std::string error_of(const std::string& text) {
  try {
    parse_model_config(text, "m/config.pbtxt");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ModelConfig, NamesFileLineAndReason) {
  EXPECT_EQ(error_of("name: \"m\"\nmax_batch_size: }").substr(0, 17), "m/config.pbtxt:2:");
  EXPECT_NE(error_of("max_batch_size: -1").find("must not be negative"), std::string::npos);
  EXPECT_NE(error_of("input { name: \"x\" dims: [ -2 ] }").find("must be positive or -1"), std::string::npos);
  EXPECT_NE(error_of("instance_group { count: 100000 }").find("instance_group.count"), std::string::npos);
  EXPECT_NE(error_of("input { data_type: TYPE_FP32 }").find("no name"), std::string::npos);
}

TEST(ModelConfig, DeepNestingIsRefused) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "unknown {";
  EXPECT_NE(error_of(text), "no error");
}

}  // namespace
}  // namespace tensord::server
