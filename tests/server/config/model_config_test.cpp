#include <gtest/gtest.h>

#include "core/base/error.h"
#include "server/config/pbtxt/model_config_text.h"

namespace tensord::server::model_config_test {
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

TEST(ModelConfig, InstanceGroupsSayWhere) {
  using Kind = InstanceGroupConfig::Kind;
  const ModelConfig config = parse_model_config(R"(
    instance_group [ { name: "g" kind: KIND_GPU count: 2 gpus: [ 3, 0 ] }, { kind: KIND_MODEL passive: true }, { },
                     { kind: KIND_CPU }, { kind: KIND_MODEL }, { kind: KIND_AUTO gpus: 127 } ])",
                                                "config.pbtxt");
  const std::vector<InstanceGroupConfig>& groups = config.instance_groups;
  ASSERT_EQ(groups.size(), 5u);
  EXPECT_EQ(groups[0].name, "g");
  EXPECT_EQ(groups[0].count, 2);
  EXPECT_EQ(groups[0].gpus, (std::vector<int>{3, 0}));
  EXPECT_EQ(groups[1].count, 1);
  EXPECT_EQ(groups[4].gpus, (std::vector<int>{127}));
  const Kind kinds[] = {Kind::kGpu, Kind::kAuto, Kind::kCpu, Kind::kModel, Kind::kAuto};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(groups[i].kind, kinds[i]) << i;
  EXPECT_EQ(config.workers, 6);
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

TEST(ModelConfig, UnknownFieldsAreToldOf) {
  std::vector<std::string> unknown;
  parse_model_config("name: \"m\"\nmax_batchsize: 4\n", "config.pbtxt", &unknown);
  ASSERT_EQ(unknown.size(), 1u);
  EXPECT_EQ(unknown[0].find("config.pbtxt:2: "), 0u) << unknown[0];
  EXPECT_NE(unknown[0].find("max_batchsize"), std::string::npos) << unknown[0];
  parse_model_config("max_batch_size: 4\n", "config.pbtxt", &unknown);
  EXPECT_TRUE(unknown.empty());
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
            "m/config.pbtxt: parameters 'precision' must be f32, tf32, bf16, int8 or auto, got 'fp16'");
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

TEST(ModelConfig, ReadsTensorsInFull) {
  const ModelConfig config = parse_model_config(R"(
    max_batch_size: 4
    input { name: "x" data_type: TYPE_BF16 dims: [ -1, 6 ] reshape { shape: [ -1, 2, 3 ] } allow_ragged_batch: true }
    input { name: "s" data_type: TYPE_STRING dims: [ 1 ] reshape { } optional: true }
    output { name: "y" data_type: TYPE_INT8 dims: [ 3 ] label_filename: "labels.txt" }
    parameters { key: "ragged_padding" value { string_value: "-1.5" } }
    parameters { key: "ragged_buckets" value { string_value: "128, 32,64" } }
    parameters { key: "version_labels" value { string_value: "stable=2, canary=3" } }
    parameters { key: "warmup_requests" value { string_value: "a.bin,b.bin" } }
    metric_tags { key: "team" value: "search" }
    response_cache { enable: true }
  )",
                                                "config.pbtxt");
  EXPECT_TRUE(config.inputs[0].allows_ragged_batch);
  EXPECT_EQ(config.inputs[0].reshape, (std::vector<int64_t>{-1, 2, 3}));
  EXPECT_TRUE(config.inputs[1].is_optional);
  EXPECT_TRUE(config.inputs[1].has_reshape);
  EXPECT_EQ(config.outputs[0].label_filename, "labels.txt");
  EXPECT_EQ(config.ragged.padding_value, -1.5);
  EXPECT_EQ(config.ragged.buckets, (std::vector<int64_t>{32, 64, 128}));
  EXPECT_EQ(config.version_labels, (std::map<std::string, std::string>{{"stable", "2"}, {"canary", "3"}}));
  EXPECT_EQ(config.metric_tags.at("team"), "search");
  ASSERT_EQ(config.warmups.size(), 2u);
  EXPECT_EQ(config.warmups[1].recorded_file, "b.bin");
  EXPECT_TRUE(config.has_response_cache);
  EXPECT_FALSE(config.source.empty());
}

TEST(ModelConfig, ReadsQueuePoliciesAndLimits) {
  const ModelConfig config = parse_model_config(R"(
    max_batch_size: 4
    dynamic_batching {
      priority_levels: 3 default_priority_level: 2 max_queue_delay_microseconds: 70
      default_queue_policy { timeout_action: DELAY allow_timeout_override: true }
      priority_queue_policy { key: 3 value { max_queue_size: 5 } }
    }
    instance_group { count: 2 rate_limiter { resources [ { name: "R" count: 3 global: true } ] priority: 2 } }
    instance_group { passive: true }
  )",
                                                "config.pbtxt");
  EXPECT_FALSE(config.dynamic_batching->preserves_ordering);
  EXPECT_TRUE(parse_model_config("max_batch_size: 2 dynamic_batching { preserve_ordering: true }", "config.pbtxt")
                  .dynamic_batching->preserves_ordering);
  EXPECT_EQ(config.dynamic_batching->default_priority_level, 2u);
  EXPECT_EQ(config.dynamic_batching->max_queue_delay_us, 70u);
  EXPECT_EQ(config.dynamic_batching->default_queue_policy.timeout_action, QueuePolicyConfig::TimeoutAction::kDelay);
  EXPECT_EQ(config.dynamic_batching->priority_queue_policies.at(3).max_queue_size, 5u);
  EXPECT_EQ(config.workers, 2);
  EXPECT_EQ(config.rate_limiter.priority, 2u);
  ASSERT_EQ(config.rate_limiter.resources.size(), 1u);
  EXPECT_TRUE(config.rate_limiter.resources[0].is_global);
  EXPECT_EQ(config.rate_limiter.resources[0].count, 3u);
}

TEST(ModelConfig, ReadsSequences) {
  const ModelConfig config = parse_model_config(R"(
    max_batch_size: 4
    sequence_batching {
      max_sequence_idle_microseconds: 5000000
      oldest { max_candidate_sequences: 8 preferred_batch_size: [ 2, 4 ] max_queue_delay_microseconds: 9 }
      control_input { name: "START" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ -1, 1 ] } }
      control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, true ] } }
      control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
      state {
        input_name: "in" output_name: "out" data_type: TYPE_FP32 dims: [ -1, 4 ]
        initial_state { name: "i" data_type: TYPE_FP32 dims: [ 1, 4 ] data_file: "begin" }
      }
      iterative_sequence: true
    }
  )",
                                                "config.pbtxt");
  const SequenceBatchingConfig& sequence = *config.sequence_batching;
  EXPECT_EQ(sequence.strategy, SequenceBatchingConfig::Strategy::kOldest);
  EXPECT_EQ(sequence.max_sequence_idle_us, 5000000u);
  EXPECT_EQ(sequence.oldest_max_candidate_sequences, 8);
  EXPECT_EQ(sequence.oldest_preferred_batch_sizes, (std::vector<int64_t>{2, 4}));
  ASSERT_EQ(sequence.controls.size(), 3u);
  EXPECT_EQ(sequence.controls[0].datatype, "FP32");
  EXPECT_EQ(sequence.controls[0].off, -1);
  EXPECT_EQ(sequence.controls[1].datatype, "BOOL");
  EXPECT_EQ(sequence.controls[2].kind, SequenceBatchingConfig::ControlKind::kCorrelationId);
  EXPECT_EQ(sequence.controls[2].datatype, "UINT64");
  ASSERT_EQ(sequence.states.size(), 1u);
  EXPECT_EQ(sequence.states[0].dims, (std::vector<int64_t>{-1, 4}));
  EXPECT_FALSE(sequence.states[0].initial_is_zero);
  EXPECT_EQ(sequence.states[0].initial_file, "begin");
  EXPECT_TRUE(sequence.is_iterative);
}

constexpr const char* kEnsemble = R"(
  name: "both" platform: "ensemble" max_batch_size: 2
  input { name: "x" data_type: TYPE_FP32 dims: [ 3 ] }
  output { name: "y" data_type: TYPE_FP32 dims: [ 3 ] }
  ensemble_scheduling { max_inflight_requests: 4 step [
    { model_name: "a" model_version: -1 input_map { key: "in" value: "x" } output_map { key: "out" value: "t" } },
    { model_name: "b" model_version: 3 input_map { key: "in" value: "t" } output_map { key: "out" value: "y" } }
  ] }
)";

TEST(ModelConfig, ReadsEnsembles) {
  const ModelConfig config = parse_model_config(kEnsemble, "config.pbtxt");
  EXPECT_TRUE(config.is_ensemble());
  ASSERT_EQ(config.ensemble_steps.size(), 2u);
  EXPECT_EQ(config.ensemble_steps[0].version, -1);
  EXPECT_EQ(config.ensemble_steps[1].model, "b");
  EXPECT_EQ(config.ensemble_steps[1].version, 3);
  EXPECT_EQ(config.ensemble_steps[1].input_map.at("in"), "t");
  EXPECT_EQ(config.ensemble_max_inflight, 4u);
}

TEST(ModelConfig, ReadsJson) {
  const ModelConfig config = parse_model_config_json(
      R"({"name": "m", "max_batch_size": 8, "backend": "pytorch", "unknown": {"a": [1]},
          "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [-1, "4"]}],
          "version_policy": {"specific": {"versions": [2]}}, "dynamicBatching": {"preferredBatchSize": [4]}})",
      "config");
  EXPECT_EQ(config.max_batch_size, 8);
  EXPECT_EQ(config.inputs[0].dims, (std::vector<int64_t>{-1, 4}));
  EXPECT_EQ(config.specific_versions, (std::vector<int64_t>{2}));
  EXPECT_EQ(config.dynamic_batching->preferred_batch_sizes, (std::vector<int64_t>{4}));
  EXPECT_THROW(parse_model_config_json("{", "config"), Error);
  EXPECT_THROW(parse_model_config_json("", "config"), Error);
  EXPECT_THROW(parse_model_config_json(std::string(100000, '['), "config"), Error);
}

// A part of a configuration, and its error message.
struct Refusal {
  const char* text;
  const char* reason;
};

class RefusedConfig : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedConfig, SaysWhy) {
  const std::string error = error_of(GetParam().text);
  EXPECT_NE(error.find(GetParam().reason), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedConfig,
    ::testing::Values(
        Refusal{"metric_tags { key: \"team\" value: \"\\377\" }", "metric_tags.value is not UTF-8"},
        Refusal{"parameters { key: \"\\377\" value { string_value: \"1\" } }", "parameters.key is not UTF-8"},
        Refusal{"name: \"\\377\"", ": name is not UTF-8"},
        Refusal{"input { name: \"x\" data_type: TYPE_FP32 dims: [ 1 ] } input { name: \"\\377\" }",
                "input.name is not UTF-8"},
        Refusal{"platform: \"tensorrt_plan\"", "platform 'tensorrt_plan' is not supported"},
        Refusal{"backend: \"python\"", "backend 'python' is not supported"},
        Refusal{"input { name: \"x\" } input { name: \"x\" }", "input 'x' appears twice"},
        Refusal{"input { name: \"x\" dims: [ 6 ] reshape { shape: [ 5 ] } }", "same number of elements"},
        Refusal{"input { name: \"x\" dims: [ 6, -1 ] reshape { shape: [ -1, 6 ] } }", "-1 for the same"},
        Refusal{"input { name: \"x\" dims: [ 1 ] reshape { } }", "max_batch_size is 0"},
        Refusal{"input { name: \"x\" allow_ragged_batch: true }", "needs a max_batch_size"},
        Refusal{"input { name: \"x\" is_shape_tensor: true }", "is_shape_tensor"},
        Refusal{"batch_input { kind: BATCH_ITEM_SHAPE }", "batch_input is not supported"},
        Refusal{"model_repository_agents { agents { name: \"checksum\" } }", "model_repository_agents.agents is not"},
        Refusal{"version_policy { specific { versions: [ 0 ] } }", "must be positive, got 0"},
        Refusal{"instance_group { passive: true }", "every instance_group is passive"},
        Refusal{"instance_group { } instance_group { rate_limiter { priority: 2 } }", "the same in every"},
        Refusal{"instance_group { rate_limiter { resources { name: \"R\" } } }", "needs a count above 0"},
        Refusal{"instance_group { kind: KIND_CPU gpus: [ 0 ] }", "has kind KIND_CPU but specifies one or more GPUs"},
        Refusal{"dynamic_batching { preserve_ordering: true priority_levels: 2 default_priority_level: 1 }",
                "Only one priority level is allowed"},
        Refusal{"dynamic_batching { preserve_ordering: true default_queue_policy { timeout_action: DELAY } }",
                "can not have DELAY"},
        Refusal{"dynamic_batching { priority_levels: 2 }", "default_priority_level must be 1 to 2, got 0"},
        Refusal{"dynamic_batching { priority_queue_policy { key: 1 value { } } }", "the level must be 1 to 0, got 1"},
        Refusal{"response_cache { enable: true } model_transaction_policy { decoupled: true }", "decoupled"},
        Refusal{"response_cache { enable: true } sequence_batching { }", "response_cache cannot be used"},
        Refusal{"sequence_batching { direct { minimum_slot_utilization: 1.5 } }", "must be 0 to 1, got 1.5"},
        Refusal{"sequence_batching { control_input { name: \"c\" } }", "'c' needs one control"},
        Refusal{"sequence_batching { control_input { name: \"c\" control { int32_false_true: [ 1 ] } } }",
                "two values"},
        Refusal{"sequence_batching { control_input { name: \"c\" control { kind: CONTROL_SEQUENCE_CORRID } } }",
                "data_type must be"},
        Refusal{"input { name: \"c\" } sequence_batching { control_input { name: \"c\" control { } } }",
                "must not be an input too"},
        Refusal{"sequence_batching { state { input_name: \"s\" output_name: \"t\" } }", "needs a data_type"},
        Refusal{"sequence_batching { state { input_name: \"s\" output_name: \"t\" data_type: TYPE_FP32 dims: [ 2 ] "
                "initial_state { data_type: TYPE_FP32 dims: [ 3 ] zero_data: true } } }",
                "do not fit"},
        Refusal{"platform: \"ensemble\"", "needs ensemble_scheduling"},
        Refusal{"ensemble_scheduling { step { model_name: \"a\" } }", "needs platform: \"ensemble\""},
        Refusal{"platform: \"ensemble\" ensemble_scheduling { }", "must have 1 to"},
        Refusal{"platform: \"ensemble\" ensemble_scheduling { step { model_name: \"a\" model_version: -1 } }",
                "'a' has no input_map"},
        Refusal{"platform: \"ensemble\" ensemble_scheduling { step { model_name: \"a\" model_version: -7 } }",
                "must be positive or -1, got -7"},
        Refusal{"parameters { key: \"version_labels\" value { string_value: \"2=stable\" } }", "got '2=stable'"},
        Refusal{"parameters { key: \"ragged_buckets\" value { string_value: \"8,x\" } }", "got 'x'"},
        Refusal{"parameters { key: \"ragged_padding\" value { string_value: \"much\" } }", "must be a number"}));

TEST(ModelConfig, DeepNestingIsRefused) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "unknown {";
  EXPECT_NE(error_of(text), "no error");
}

}  // namespace
}  // namespace tensord::server::model_config_test
