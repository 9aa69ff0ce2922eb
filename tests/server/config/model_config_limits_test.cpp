// Every check of values in config.pbtxt: the bound itself is accepted, and one beyond it is refused with the field's
// name.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "core/base/error.h"
#include "server/config/pbtxt/model_config_text.h"

namespace tensord::server::model_config_limits_test {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_model_config(text, "c");
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

std::string repeated(const std::string& piece, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += piece;
  return out;
}

std::string sequence(const std::string& fields) { return "max_batch_size: 4 sequence_batching { " + fields + " }"; }

std::string control(const std::string& fields, const std::string& name = "s") {
  return "control_input { name: \"" + name + "\" control { " + fields + " } } ";
}

std::string state(const std::string& fields, const std::string& input = "i", const std::string& output = "o") {
  return "state { input_name: \"" + input + "\" output_name: \"" + output + "\" " + fields + " } ";
}

std::string ensemble(const std::string& step, const std::string& others = "name: \"e\" platform: \"ensemble\"") {
  return others + " ensemble_scheduling { step { " + step + " } }";
}

void expect_message(const std::string& text, const std::string& message) {
  EXPECT_TRUE(error_of(text).starts_with("c: " + message)) << text.substr(0, 300) << "\n" << error_of(text);
}

TEST(ModelConfigLimits, TensorsAndInstances) {
  const auto input = [](const std::string& fields, const char* batch = "") {
    return std::string(batch) + " input { name: \"x\" data_type: TYPE_FP32 " + fields + " }";
  };
  EXPECT_EQ(error_of(input(repeated("dims: 1 ", 64))), "none");
  EXPECT_NE(error_of(input(repeated("dims: 1 ", 65))).find("has more than 64 dims"), std::string::npos);
  EXPECT_EQ(error_of(input("dims: -1")), "none");
  EXPECT_NE(error_of(input("dims: 0")).find("must be positive or -1, got 0"), std::string::npos);
  EXPECT_EQ(error_of(input("dims: 2 reshape { }", "max_batch_size: 1")).find("c: dims and reshape of 'x'"), 0u);
  expect_message(input("dims: 1 reshape { }"), "reshape of 'x' must have a shape where max_batch_size is 0");
  EXPECT_EQ(error_of(input("dims: 1 reshape { }", "max_batch_size: 1")), "none");
  EXPECT_EQ(error_of(input("dims: [ 6, -1, 2 ] reshape { shape: [ 2, 3, -1, 2 ] }")), "none");
  expect_message(input("dims: [ 6, -1, 2 ] reshape { shape: [ 3, -1, 4 ] }"), "dims and reshape of 'x'");
  expect_message(input("dims: [ 6, -1, 2 ] reshape { shape: [ 12 ] }"), "dims and reshape of 'x'");
  expect_message(input("allow_ragged_batch: true"), "input 'x': allow_ragged_batch needs a max_batch_size");
  EXPECT_EQ(error_of(input("allow_ragged_batch: true", "max_batch_size: 1")), "none");
  expect_message(input("is_shape_tensor: true"), "is_shape_tensor of 'x' is not supported");
  expect_message(input("") + input(""), "input 'x' appears twice");
  expect_message("output { name: \"y\" } output { name: \"y\" }", "output 'y' appears twice");
  EXPECT_EQ(error_of(input("") + " output { name: \"x\" }"), "none");
  EXPECT_EQ(error_of("instance_group { count: 256 }"), "none");
  expect_message("instance_group { count: 257 }", "instance_group.count must be 0 to 256");
  expect_message("instance_group { count: -1 }", "instance_group.count must be 0 to 256");
  expect_message("instance_group { count: 256 } instance_group { }", "more than 256 instances");
  EXPECT_EQ(error_of("instance_group { count: 255 } instance_group { }"), "none");
  expect_message("instance_group { name: \"g\" kind: KIND_GPU gpus: -1 }", "instance group g: there is no GPU -1");
  expect_message("instance_group { name: \"g\" gpus: 128 }", "instance group g: there is no GPU 128");
  expect_message("instance_group { passive: true }", "every instance_group is passive");
  EXPECT_EQ(error_of("version_policy { specific { versions: 1 } }"), "none");
  expect_message("version_policy { specific { versions: 0 } }", "version_policy.specific.versions must be positive");
}

TEST(ModelConfigLimits, RateLimiters) {
  const auto group = [](const std::string& resource) {
    return "instance_group { count: 1 rate_limiter { priority: 2 resources { " + resource + " } } } ";
  };
  EXPECT_EQ(error_of(group("name: \"r\" count: 1")), "none");
  expect_message(group("name: \"r\""), "instance_group.rate_limiter: resource 'r' needs a count above 0");
  expect_message(group("count: 1"), "a resource of instance_group.rate_limiter has no name");
  EXPECT_EQ(error_of(group("name: \"r\" count: 1") + group("name: \"r\" count: 1")), "none");
  const char* const differs = "rate_limiter must be the same in every instance_group";
  for (const char* other : {"name: \"r\" count: 2", "name: \"s\" count: 1", "name: \"r\" count: 1 global: true"}) {
    expect_message(group("name: \"r\" count: 1") + group(other), differs);
  }
  expect_message("instance_group { rate_limiter { priority: 1 } } instance_group { rate_limiter { priority: 2 } }",
                 differs);
  expect_message(group("name: \"r\" count: 1") + "instance_group { rate_limiter { priority: 2 } }", differs);
}

TEST(ModelConfigLimits, Warmups) {
  const auto warmup = [](const std::string& fields) {
    return "max_batch_size: 4 model_warmup { name: \"w\" " + fields + " }";
  };
  const auto input = [&](const std::string& fields) {
    return warmup("inputs { key: \"x\" value { data_type: TYPE_FP32 " + fields + " } }");
  };
  EXPECT_EQ(error_of(warmup("count: 10000 batch_size: 4")), "none");
  expect_message(warmup("count: 10001"), "model_warmup 'w': count must be 0 to 10000, got 10001");
  expect_message(warmup("batch_size: 5"), "model_warmup 'w': batch_size must be 1 to 4, got 5");
  EXPECT_EQ(error_of(input(repeated("dims: 1 ", 64) + "zero_data: true")), "none");
  expect_message(input(repeated("dims: 1 ", 65) + "zero_data: true"), "model_warmup 'w': input 'x' has too many dims");
  expect_message(input("dims: 0 zero_data: true"), "model_warmup 'w': dims of 'x' must be positive, got 0");
  expect_message(input("dims: 1"), "model_warmup 'w': input 'x' needs zero_data");
  expect_message(warmup("inputs { key: \"x\" value { zero_data: true } }"),
                 "model_warmup 'w': input 'x' needs a data_type");
}

TEST(ModelConfigLimits, DynamicBatching) {
  const auto batching = [](const std::string& fields) {
    return "max_batch_size: 4 dynamic_batching { " + fields + " }";
  };
  EXPECT_EQ(error_of(batching("preferred_batch_size: [ 1, 4 ]")), "none");
  expect_message(batching("preferred_batch_size: 0"), "dynamic_batching.preferred_batch_size must be 1 to 4, got 0");
  expect_message(batching("preferred_batch_size: 5"), "dynamic_batching.preferred_batch_size must be 1 to 4, got 5");
  for (const char* level : {"1", "2"}) {
    EXPECT_EQ(error_of(batching(concat("priority_levels: 2 default_priority_level: ", level))), "none");
    EXPECT_EQ(error_of(batching(concat("priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: ",
                                       level, " value { } }"))),
              "none");
  }
  for (const char* level : {"0", "3"}) {
    expect_message(batching(concat("priority_levels: 2 default_priority_level: ", level)),
                   concat("dynamic_batching.default_priority_level must be 1 to 2, got ", level));
    expect_message(batching(concat("priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: ", level,
                                   " value { } }")),
                   concat("dynamic_batching.priority_queue_policy: the level must be 1 to 2, got ", level));
  }
  const std::string ordered = "preserve_ordering: true priority_levels: 1 default_priority_level: 1 ";
  EXPECT_EQ(error_of(batching(ordered)), "none");
  expect_message(batching("preserve_ordering: true priority_levels: 2 default_priority_level: 1"),
                 "dynamic_batching: Only one priority level");
  const char* const delays = "dynamic_batching: Queue policy can not have DELAY";
  expect_message(batching(ordered + "default_queue_policy { timeout_action: DELAY }"), delays);
  expect_message(batching(ordered + "priority_queue_policy { key: 1 value { timeout_action: DELAY } }"), delays);
  EXPECT_EQ(error_of(batching("default_queue_policy { timeout_action: DELAY }")), "none");
  expect_message("response_cache { enable: true } model_transaction_policy { decoupled: true }",
                 "response_cache cannot be used with the decoupled");
}

TEST(ModelConfigLimits, ControlsOfSequences) {
  const std::string start = "kind: CONTROL_SEQUENCE_START ",
                    id = "kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 ";
  EXPECT_EQ(error_of(sequence(control(start + "fp32_false_true: [ 0, 1 ]") + control(id, "c"))), "none");
  const std::pair<std::string, const char*> wrong[] = {
      {control(start + "fp32_false_true: [ 0, 1 ] int32_false_true: [ 0, 1 ]"),
       "control_input 's' has values of two types"},
      {control(start + "bool_false_true: [ 0, 1 ] int32_false_true: [ 0, 1 ]"),
       "control_input 's' has values of two types"},
      {control(start + "fp32_false_true: 1"), "control_input 's' needs two values, got 1"},
      {control(start), "control_input 's' needs int32_false_true"},
      {control(id + "int32_false_true: [ 0, 1 ]"), "control_input 's': a correlation id has no two values"},
      {control(id + "fp32_false_true: [ 0, 1 ]"), "control_input 's': a correlation id has no two values"},
      {control(id + "bool_false_true: [ 0, 1 ]"), "control_input 's': a correlation id has no two values"},
      {control("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32"), "control_input 's': data_type must be"},
      {control(id) + control(id, "t"), "control_input 't' is the second of its kind"},
      {control(id) + control(start + "fp32_false_true: [ 0, 1 ]"), "input 's' appears twice"},
      {control(id, ""), "control_input needs a name"},
      {"control_input { name: \"s\" }", "control_input 's' needs one control, got 0"},
  };
  for (const auto& [fields, message] : wrong) expect_message(sequence(fields), concat("sequence_batching: ", message));
  expect_message("input { name: \"s\" data_type: TYPE_FP32 } " + sequence(control(id)),
                 "sequence_batching: 's' is filled by the server");
  expect_message("response_cache { enable: true } " + sequence(control(id)), "sequence_batching: response_cache");
}

TEST(ModelConfigLimits, StatesOfSequences) {
  const auto initial = [](const std::string& fields) {
    return state("data_type: TYPE_FP32 dims: [ -1, 2 ] initial_state { name: \"n\" " + fields + " }");
  };
  EXPECT_EQ(error_of(sequence(state("data_type: TYPE_FP32 dims: [ -1, 1 ]"))), "none");
  EXPECT_EQ(error_of(sequence(initial("data_type: TYPE_FP32 dims: [ 5, 2 ] zero_data: true"))), "none");
  EXPECT_EQ(error_of(sequence(initial("data_type: TYPE_FP32 dims: [ 5, 2 ] data_file: \"f\""))), "none");
  const char* const one = "data_type: TYPE_FP32 dims: 1";
  const std::pair<std::string, const char*> wrong[] = {
      {state("data_type: TYPE_FP32 dims: 0"), "state 'i': dims must be positive or -1, got 0"},
      {state("data_type: TYPE_FP32 dims: -2"), "state 'i': dims must be positive or -1, got -2"},
      {state("dims: 1"), "state 'i' needs a data_type"},
      {state(one, ""), "input_name of state needs a name"},
      {state(one, "i", ""), "state 'i' needs an output_name"},
      {state(one) + state(one, "j"), "output 'o' is the state of two inputs"},
      {state(one) + state(one, "i", "p"), "input 'i' appears twice"},
      {state("data_type: TYPE_FP32 dims: 1 initial_state { zero_data: true } initial_state { zero_data: true }"),
       "state 'i' must have at most one initial_state, got 2"},
      {initial("data_type: TYPE_FP16 dims: [ 5, 2 ] zero_data: true"),
       "state 'i': initial_state is FP16, the state FP32"},
      {initial("data_type: TYPE_FP32 dims: [ -1, 2 ] zero_data: true"),
       "state 'i': initial_state: dims must be positive"},
      {initial("data_type: TYPE_FP32 dims: [ 5, 3 ] zero_data: true"), "state 'i': dims of initial_state do not fit"},
      {initial("data_type: TYPE_FP32 dims: 2 zero_data: true"), "state 'i': dims of initial_state do not fit"},
      {initial("data_type: TYPE_FP32 dims: [ 5, 2, 1 ] zero_data: true"),
       "state 'i': dims of initial_state do not fit"},
      {initial("data_type: TYPE_FP32 dims: [ 5, 2 ] data_file: \"\""), "state 'i': data_file is empty"},
      {initial("data_type: TYPE_FP32 dims: [ 5, 2 ]"), "state 'i': initial_state needs zero_data or data_file"},
  };
  for (const auto& [fields, message] : wrong) expect_message(sequence(fields), concat("sequence_batching: ", message));
}

TEST(ModelConfigLimits, StrategiesOfSequences) {
  for (const char* fields : {"direct { minimum_slot_utilization: 0 }", "direct { minimum_slot_utilization: 1 }",
                             "oldest { max_candidate_sequences: 0 }", "oldest { max_candidate_sequences: 1048576 }",
                             "oldest { preferred_batch_size: [ 1, 4 ] }"}) {
    EXPECT_EQ(error_of(sequence(fields)), "none") << fields;
  }
  const std::pair<const char*, const char*> wrong[] = {
      {"direct { minimum_slot_utilization: -0.001 }", ".direct.minimum_slot_utilization must be 0 to 1"},
      {"direct { minimum_slot_utilization: 1.001 }", ".direct.minimum_slot_utilization must be 0 to 1"},
      {"oldest { max_candidate_sequences: -1 }", ".oldest.max_candidate_sequences must be 0 to 1048576, got -1"},
      {"oldest { max_candidate_sequences: 1048577 }", ".oldest.max_candidate_sequences must be 0 to 1048576"},
      {"oldest { preferred_batch_size: 0 }", ".oldest.preferred_batch_size must be 1 to 4, got 0"},
      {"oldest { preferred_batch_size: 5 }", ".oldest.preferred_batch_size must be 1 to 4, got 5"},
  };
  for (const auto& [fields, message] : wrong) expect_message(sequence(fields), concat("sequence_batching", message));
  EXPECT_EQ(
      parse_model_config(sequence("max_sequence_idle_microseconds: 7"), "c").sequence_batching->max_sequence_idle_us,
      7u);
}

TEST(ModelConfigLimits, Ensembles) {
  const std::string maps = "input_map { key: \"a\" value: \"b\" } output_map { key: \"c\" value: \"d\" } ";
  const std::string step = "model_name: \"m\" model_version: -1 " + maps;
  EXPECT_EQ(error_of(ensemble(step)), "none");
  EXPECT_EQ(error_of(ensemble(step, "backend: \"ensemble\"")), "none");
  EXPECT_EQ(error_of(ensemble("model_name: \"m\" model_version: 1 " + maps)), "none");
  const std::string steps = repeated("step { " + step + " } ", 1000);
  EXPECT_EQ(error_of("platform: \"ensemble\" ensemble_scheduling { " + steps + " }"), "none");
  expect_message("platform: \"ensemble\" ensemble_scheduling { " + steps + "step { " + step + " } }",
                 "ensemble_scheduling must have 1 to 1000 steps, got 1001");
  expect_message("platform: \"ensemble\" ensemble_scheduling { }",
                 "ensemble_scheduling must have 1 to 1000 steps, got 0");
  expect_message("platform: \"ensemble\"", "an ensemble needs ensemble_scheduling");
  expect_message("backend: \"ensemble\"", "an ensemble needs ensemble_scheduling");
  const char* const needs = "ensemble_scheduling needs platform: \"ensemble\"";
  for (const char* others : {"", "backend: \"pytorch\"", "platform: \"pytorch_libtorch\" backend: \"ensemble\""}) {
    expect_message(ensemble(step, others), needs);
  }
  const std::string good = "platform: \"ensemble\" ";
  expect_message(ensemble(step, good + "default_model_filename: \"m.pt\""),
                 "an ensemble has no default_model_filename");
  expect_message(ensemble(step, good + "instance_group { count: 1 }"), "an ensemble has no instance_group");
  const std::pair<std::string, const char*> wrong[] = {
      {"model_version: 1 " + maps, "a step has no model_name"},
      {"model_name: \"e\" model_version: 1 " + maps, "step 'e' is the ensemble itself"},
      {"model_name: \"m\" " + maps, "step 'm': model_version must be positive or -1, got 0"},
      {"model_name: \"m\" model_version: -2 " + maps, "step 'm': model_version must be positive or -1, got -2"},
      {step + "model_namespace: \"n\"", "step 'm': model_namespace is not supported"},
      {"model_name: \"m\" model_version: 1 output_map { key: \"c\" value: \"d\" }", "step 'm' has no input_map"},
      {"model_name: \"m\" model_version: 1 input_map { key: \"c\" value: \"d\" }", "step 'm' has no output_map"},
      {step + "input_map { key: \"\" value: \"x\" }", "step 'm': input_map and output_map must not have empty names"},
      {step + "output_map { key: \"x\" value: \"\" }", "step 'm': input_map and output_map must not have empty names"},
  };
  for (const auto& [text, message] : wrong) expect_message(ensemble(text), concat("ensemble_scheduling: ", message));
}

TEST(ModelConfigLimits, Parameters) {
  const auto with = [](const char* key, const std::string& value) {
    return concat("parameters { key: \"", key, "\" value { string_value: \"", value, "\" } }");
  };
  const auto sizes = [](int count) {
    std::string text;
    for (int i = 1; i <= count; ++i) text += concat(i > 1 ? "," : "", i);
    return text;
  };
  for (const int count : {1, 1024}) EXPECT_EQ(error_of(with("ragged_buckets", sizes(count))), "none") << count;
  expect_message(with("ragged_buckets", sizes(1025)),
                 "parameters 'ragged_buckets' must have 1 to 1024 sizes, got 1025");
  for (const char* value : {"", ","}) expect_message(with("ragged_buckets", value), "parameters 'ragged_buckets' must");
  for (const char* value : {"0", "-1", "1x", "1,0"}) {
    expect_message(with("ragged_buckets", value), "parameters 'ragged_buckets' must be positive sizes");
  }
  EXPECT_EQ(error_of(with("version_labels", "stable=1,canary=2")), "none");
  expect_message(with("version_labels", "a=1,a=2"), "parameters 'version_labels' has label 'a' twice");
  for (const char* value : {"a", "=1", "1a=1", "0=1", "9a=1", "a=0", "a=-1", "a=x", "a=1x"}) {
    expect_message(with("version_labels", value), "parameters 'version_labels' must be as");
  }
  for (const char* value : {":a=1", "/a=1"}) EXPECT_EQ(error_of(with("version_labels", value)), "none") << value;
  for (const auto& [key, max] : {std::pair("plan_cache_size", 65536), std::pair("INTRA_OP_THREAD_COUNT", 1024)}) {
    for (const int value : {0, max}) EXPECT_EQ(error_of(with(key, concat(value))), "none") << value;
    for (const std::string& value : {std::string("-1"), concat(max + 1), std::string("x"), std::string("1x")}) {
      expect_message(with(key, value), concat("parameters '", key, "' must be 0 to ", max, ", got '", value, "'"));
    }
  }
}

TEST(ModelConfigLimits, TextsThatNestDeeply) {
  const auto text = [](int depth) { return repeated("a { ", depth) + repeated("}", depth); };
  EXPECT_EQ(error_of(text(20)), "none");
  EXPECT_NE(error_of(text(100'000)), "none");
  const auto json_error = [](const std::string& json) -> std::string {
    try {
      parse_model_config_json(json, "c");
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  const auto nested = [](int depth) { return "{\"x\":" + repeated("[", depth - 1) + repeated("]", depth - 1) + "}"; };
  EXPECT_EQ(json_error(nested(32)), "none");
  EXPECT_EQ(json_error(nested(33)), "c: nested deeper than 32");
  EXPECT_EQ(json_error("{\"name\": \"" + repeated("[", 33) + "\"}"), "none");
  EXPECT_EQ(json_error("{\"name\": \"\\\"" + repeated("{", 33) + "\"}"), "none");
  EXPECT_EQ(json_error("{\"name\": ").find("c: "), 0u);
}

}  // namespace
}  // namespace tensord::server::model_config_limits_test
