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
  EXPECT_EQ(config.dynamic_batching->default_queue_policy.max_queue_size, 7u);
  EXPECT_EQ(config.dynamic_batching->default_queue_policy.default_timeout_us, 1500u);
  EXPECT_EQ(config.parameters.at("INFERENCE_MODE"), "true");
}

TEST(ModelConfig, SkipsUnknownFields) {
  const ModelConfig config = parse_model_config(R"(
    name: "m"
    optimization { cuda { graphs: true } execution_accelerators { gpu_execution_accelerator : [ { name : "x" } ] } }
    response_cache { enable: true }
    max_batch_size: 4
  )",
                                                "config.pbtxt");
  EXPECT_EQ(config.name, "m");
  EXPECT_EQ(config.max_batch_size, 4);
}

TEST(ModelConfig, ReadsWarmups) {
  const ModelConfig config = parse_model_config(R"(
    max_batch_size: 8
    dynamic_batching { preferred_batch_size: [ 2, 4 ] }
    model_warmup [
      {
        name: "zeros" batch_size: 4 count: 3
        inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 3, 5 ] zero_data: true } }
        inputs { key: "n" value { data_type: TYPE_INT64 dims: [ 1 ] random_data: true } }
      },
      { name: "file" inputs { key: "x" value { data_type: TYPE_STRING input_data_file: "text" } } }
    ]
  )",
                                                "config.pbtxt");
  using Source = ModelConfig::Warmup::Source;
  EXPECT_EQ(config.dynamic_batching->preferred_batch_sizes, (std::vector<int64_t>{2, 4}));
  ASSERT_EQ(config.warmups.size(), 2u);
  const ModelConfig::Warmup& first = config.warmups[0];
  EXPECT_EQ(first.name, "zeros");
  EXPECT_EQ(first.batch_size, 4);
  EXPECT_EQ(first.count, 3u);
  EXPECT_EQ(first.inputs.at("x").dims, (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(first.inputs.at("x").datatype, "FP32");
  EXPECT_EQ(first.inputs.at("x").source, Source::kZeros);
  EXPECT_EQ(first.inputs.at("n").source, Source::kRandom);
  const ModelConfig::Warmup& second = config.warmups[1];
  EXPECT_EQ(second.batch_size, 1);
  EXPECT_EQ(second.count, 1u);
  EXPECT_EQ(second.inputs.at("x").source, Source::kFile);
  EXPECT_EQ(second.inputs.at("x").file, "text");
  EXPECT_EQ(second.inputs.at("x").datatype, "BYTES");
}

std::string parameter(const std::string& key, const std::string& value) {
  return "parameters { key: \"" + key + "\" value: { string_value: \"" + value + "\" } }\n";
}

TEST(ModelConfig, ReadsEngineParameters) {
  const ModelConfig config =
      parse_model_config(parameter("precision", "bf16") + parameter("plan_cache_size", "7") +
                             parameter("jit_disable", "cse, dce") + parameter("jit_limit", "inline:3") +
                             parameter("DISABLE_OPTIMIZED_EXECUTION", "true") + parameter("INTRA_OP_THREAD_COUNT", "3"),
                         "config.pbtxt");
  const EngineOptions engine = EngineOptions{.plan_cache_size = 9}.with(config.engine);
  EXPECT_EQ(engine.precision, "bf16");
  EXPECT_EQ(engine.plan_cache_size, 7);
  EXPECT_EQ(engine.disabled_passes, (std::vector<std::string>{"cse", "dce"}));
  EXPECT_EQ(engine.pass_limits, (std::vector<std::string>{"inline:3"}));
  EXPECT_FALSE(engine.optimize);
  EXPECT_EQ(config.threads, 3);
  const EngineOptions defaults = EngineOptions{.precision = "int8", .plan_cache_size = 9}.with({});
  EXPECT_EQ(defaults.precision, "int8");
  EXPECT_EQ(defaults.plan_cache_size, 9);
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

TEST(ModelConfig, NamesWrongParameters) {
  EXPECT_EQ(error_of(parameter("precision", "fp16")),
            "m/config.pbtxt: parameters 'precision' must be f32, bf16 or int8, got 'fp16'");
  EXPECT_EQ(error_of(parameter("plan_cache_size", "-1")),
            "m/config.pbtxt: parameters 'plan_cache_size' must be 0 to 65536, got '-1'");
  EXPECT_EQ(error_of(parameter("INTRA_OP_THREAD_COUNT", "many")),
            "m/config.pbtxt: parameters 'INTRA_OP_THREAD_COUNT' must be 0 to 1024, got 'many'");
  EXPECT_EQ(error_of(parameter("DISABLE_OPTIMIZED_EXECUTION", "1")),
            "m/config.pbtxt: parameters 'DISABLE_OPTIMIZED_EXECUTION' must be true or false, got '1'");
  EXPECT_EQ(error_of(parameter("ENABLE_WEIGHT_SHARING", "whatever")), "no error");
}

TEST(ModelConfig, NamesWrongWarmups) {
  const auto warmup = [](const std::string& text) {
    return error_of("max_batch_size: 4 model_warmup { name: \"w\" " + text + " }");
  };
  EXPECT_NE(warmup("batch_size: 5").find("'w': batch_size must be 1 to 4, got 5"), std::string::npos);
  EXPECT_NE(warmup("count: 10001").find("'w': count must be"), std::string::npos);
  const auto input = [&](const std::string& text) { return warmup("inputs { key: \"x\" value { " + text + " } }"); };
  EXPECT_NE(input("zero_data: true").find("'x' needs a data_type"), std::string::npos);
  EXPECT_NE(input("data_type: TYPE_FP32").find("needs zero_data, random_data or input_data_file"), std::string::npos);
  EXPECT_NE(input("data_type: TYPE_FP32 dims: [ -1 ] zero_data: true").find("'x' must be positive, got -1"),
            std::string::npos);
  EXPECT_NE(error_of("max_batch_size: 4 dynamic_batching { preferred_batch_size: 5 }").find("preferred_batch_size"),
            std::string::npos);
}

TEST(ModelConfig, DeepNestingIsRefused) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "unknown {";
  EXPECT_NE(error_of(text), "no error");
}

}  // namespace
}  // namespace tensord::server
