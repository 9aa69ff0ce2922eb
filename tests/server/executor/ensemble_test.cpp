#include <thread>

#include "tests/server/executor/ensemble_fixture.h"

namespace tensord::server::fixtures::ensemble_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(EnsembleTest, RunsStepsInTheOrderOfTheirTensors) {
  add_plus("one", 1);
  add_plus("ten", 10);
  add_ensemble("all", config_of({kSecond, kFirst}));
  EXPECT_EQ(models_["all"]->signature().inputs[0].name, "in");
  EXPECT_EQ(models_["all"]->signature().outputs[0].name, "b");
  Answers answers;
  submit("all", {floats("in", {1, 2})}, answers);
  answers.wait();
  ASSERT_EQ(answers.results.size(), 1u);
  ASSERT_TRUE(answers.results[0].status.ok()) << answers.results[0].status.message();
  ASSERT_EQ(answers.results[0].outputs.size(), 1u);
  EXPECT_EQ(answers.results[0].outputs[0].name, "b");
  EXPECT_THAT(values_of(answers.results[0].outputs[0]), ElementsAre(12, 13));
  EXPECT_EQ(models_["one"]->metrics().counts().execution_count, 1u);
  EXPECT_EQ(models_["ten"]->metrics().counts().success.count, 1u);
  EXPECT_EQ(models_["all"]->metrics().counts().execution_count, 1u);
}

TEST_F(EnsembleTest, SharesTensorsAmongSteps) {
  std::mutex mutex;
  std::vector<const void*> seen;
  const auto watch = [&](const std::vector<InferTensor>& inputs) {
    const std::lock_guard lock(mutex);
    seen.push_back(inputs[0].tensor.raw_data());
    return std::vector<InferTensor>{floats("y", {1})};
  };
  add_function("left", {"x"}, {"y"}, watch);
  add_function("right", {"x"}, {"y"}, watch);
  add_function("sum", {"p", "q"}, {"y"}, [](const std::vector<InferTensor>& inputs) {
    return std::vector<InferTensor>{floats("y", {values_of(inputs[0])[0] + values_of(inputs[1])[0]})};
  });
  add_ensemble("all",
               config_of({{.model = "left", .input_map = {{"x", "in"}}, .output_map = {{"y", "a"}}},
                          {.model = "right", .input_map = {{"x", "in"}}, .output_map = {{"y", "b"}}},
                          {.model = "sum", .input_map = {{"p", "a"}, {"q", "b"}}, .output_map = {{"y", "out"}}}}));
  InferTensor input = floats("in", {5});
  const void* data = input.tensor.raw_data();
  Answers answers;
  submit("all", {std::move(input)}, answers);
  answers.wait();
  ASSERT_TRUE(answers.results[0].status.ok()) << answers.results[0].status.message();
  EXPECT_THAT(values_of(answers.results[0].outputs[0]), ElementsAre(2));
  EXPECT_THAT(seen, ElementsAre(data, data));
}

TEST_F(EnsembleTest, RunsOnlyWhatTheWantedOutputsNeed) {
  add_plus("one", 1);
  add_plus("ten", 10);
  ModelConfig config = config_of({kFirst, kSecond});
  config.outputs = {named("a"), named("b")};
  add_ensemble("all", config);
  Answers answers;
  submit("all", {floats("in", {1})}, answers, {"a"});
  answers.wait();
  ASSERT_EQ(answers.results[0].outputs.size(), 1u);
  EXPECT_EQ(answers.results[0].outputs[0].name, "a");
  EXPECT_EQ(models_["ten"]->metrics().counts().execution_count, 0u);
  Answers both;
  submit("all", {floats("in", {1})}, both);
  both.wait();
  EXPECT_EQ(both.results[0].outputs.size(), 2u);
}

TEST_F(EnsembleTest, AFailureStopsTheOtherSteps) {
  add_endless("endless");
  add_function("broken", {"x"}, {"y"}, [this](const auto&) -> std::vector<InferTensor> {
    while (endless_runs == 0) std::this_thread::yield();
    fail(ErrorCode::kScriptRaised, "no luck");
  });
  add_ensemble("all", config_of({{.model = "endless", .input_map = {{"x", "in"}}, .output_map = {{"y", "a"}}},
                                 {.model = "broken", .input_map = {{"x", "in"}}, .output_map = {{"y", "b"}}}}));
  Answers answers;
  submit("all", {floats("in", {1})}, answers);
  answers.wait();
  ASSERT_EQ(answers.results.size(), 1u);
  EXPECT_THAT(std::string(answers.results[0].status.message()), HasSubstr("in ensemble 'all', no luck"));
  EXPECT_EQ(answers.results[0].times.compute_start_ns, 0);  // a failure of its step, not of its own
}

TEST_F(EnsembleTest, CancellationReachesTheSteps) {
  add_endless("endless");
  add_ensemble("inner", config_of({{.model = "endless", .input_map = {{"x", "in"}}, .output_map = {{"y", "a"}}}}));
  add_ensemble("all", config_of({{.model = "inner", .input_map = {{"in", "in"}}, .output_map = {{"a", "out"}}}}));
  Answers answers, waiting;
  submit("all", {floats("in", {1})}, answers);
  submit("all", {floats("in", {1})}, waiting);
  while (endless_runs == 0) std::this_thread::yield();
  waiting.is_cancelled_flag = true;
  models_["all"]->record_cancelled();
  waiting.wait();
  EXPECT_EQ(endless_runs, 1);
  EXPECT_EQ(waiting.results[0].status.code(), absl::StatusCode::kCancelled);
  answers.is_cancelled_flag = true;
  models_["all"]->record_cancelled();
  answers.wait();
  EXPECT_EQ(answers.results[0].status.code(), absl::StatusCode::kCancelled);
}

TEST_F(EnsembleTest, DeadlinesAreThoseOfTheRequest) {
  add_plus("one", 1);
  add_ensemble("all", config_of({kFirst}));
  Answers answers;
  InferRequest request;
  request.inputs = {floats("in", {1})};
  request.input_indices = {0};
  request.deadline_ns = 1;
  models_["all"]->submit(std::move(request), answers);
  answers.wait();
  EXPECT_EQ(answers.results[0].status.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(EnsembleTest, AnswersOfADecoupledStepGoOnInOrder) {
  add_items("items");
  add_plus("one", 1);
  add_plus("ten", 10);
  ModelConfig config = config_of({kFirst,
                                  {.model = "items", .input_map = {{"x", "a"}}, .output_map = {{"y", "item"}}},
                                  {.model = "ten", .input_map = {{"x", "item"}}, .output_map = {{"y", "out"}}}});
  config.outputs = {named("out")};
  for (const uint32_t inflight : {0u, 1u, 3u}) {
    config.ensemble_max_inflight = inflight;
    add_ensemble("all", config);
    EXPECT_TRUE(models_["all"]->config().is_decoupled);
    Answers answers;
    submit("all", {floats("in", {1, 2, 3, 4, 5, 6, 7, 8})}, answers);
    answers.wait();
    std::vector<float> got;
    for (const InferResult& result : answers.results) {
      ASSERT_TRUE(result.status.ok()) << result.status.message();
      if (!result.is_empty) got.push_back(values_of(result.outputs[0])[0]);
    }
    EXPECT_THAT(got, ElementsAre(12, 13, 14, 15, 16, 17, 18, 19));
    Answers none;
    submit("all", {floats("in", {})}, none);
    none.wait();
    ASSERT_EQ(none.results.size(), 1u);
    EXPECT_TRUE(none.results[0].is_empty);
  }
}

TEST_F(EnsembleTest, ManyRequestsAtATime) {
  add_plus("one", 1);
  add_plus("ten", 10);
  add_ensemble("all", config_of({kFirst, kSecond}));
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        Answers answers;
        submit("all", {floats("in", {static_cast<float>(t * 1000 + i)})}, answers);
        answers.wait();
        if (answers.results[0].status.ok() && values_of(answers.results[0].outputs[0])[0] == t * 1000 + i + 11) ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 800);
  EXPECT_EQ(models_["one"]->metrics().counts().in_flight, 0);
}

TEST_F(EnsembleTest, AModelMayBeThereTwice) {
  add_plus("one", 1);
  add_ensemble("all", config_of({{.model = "one", .input_map = {{"x", "in"}}, .output_map = {{"y", "a"}}},
                                 {.model = "one", .input_map = {{"x", "a"}}, .output_map = {{"y", "b"}}}}));
  Answers answers;
  submit("all", {floats("in", {1})}, answers);
  answers.wait();
  EXPECT_THAT(values_of(answers.results[0].outputs[0]), ElementsAre(3));
}

TEST_F(EnsembleTest, RefusesWhatCannotRun) {
  add_plus("one", 1);
  add_plus("ten", 10);
  EXPECT_THAT(refusal(config_of({{.model = "gone", .input_map = {{"x", "in"}}, .output_map = {{"y", "a"}}}})),
              HasSubstr("unknown model: 'gone'"));
  EXPECT_THAT(refusal(config_of({{.model = "one", .input_map = {{"z", "in"}}, .output_map = {{"y", "a"}}}})),
              HasSubstr("model 'one' has no input 'z'"));
  EXPECT_THAT(refusal(config_of({{.model = "one", .input_map = {{"x", "in"}}, .output_map = {{"z", "a"}}}})),
              HasSubstr("model 'one' has no output 'z'"));
  EXPECT_THAT(refusal(config_of({{.model = "one", .input_map = {{"x", "b"}}, .output_map = {{"y", "a"}}}, kSecond})),
              HasSubstr("waits for a tensor that is made of its own outputs"));
  EXPECT_THAT(refusal(config_of({kFirst, kFirst})), HasSubstr("tensor 'a' is made by two steps"));
  ModelConfig config = config_of({kFirst, kSecond});
  config.outputs = {named("c")};
  EXPECT_THAT(refusal(config), HasSubstr("no step makes output 'c'"));
  config.outputs.clear();
  config.inputs = {named("other")};
  EXPECT_THAT(refusal(config), HasSubstr("no step and no input makes tensor 'in'"));
  config.inputs = {named("in"), named("a")};
  EXPECT_THAT(refusal(config), HasSubstr("input 'a' is made by a step too"));
  config.inputs.clear();
  add_identity("few", 2, {-1, 3});
  ModelConfig batches = config_of({{.model = "few", .input_map = {{"x", "in"}}, .output_map = {{"y", "a"}}}});
  batches.max_batch_size = 4;
  EXPECT_THAT(refusal(batches), HasSubstr("allows maximum batch size 4, but it contains model 'few' which only"));
  add_ensemble("all", config_of({kFirst, kSecond}));
  add_ensemble("outer", config_of({{.model = "all", .input_map = {{"in", "in"}}, .output_map = {{"b", "c"}}}}));
  EXPECT_THAT(refusal(config_of({{.model = "outer", .input_map = {{"in", "in"}}, .output_map = {{"c", "d"}}}})),
              HasSubstr("ensemble 'all' needs itself"));
}

TEST_F(EnsembleTest, TypesAndShapesMustFit) {
  Signature signature = signature_of({"x"}, {"y"});
  signature.inputs[0].datatype = DataType::kFp32;
  signature.inputs[0].shape = Dims{-1, 3};
  signature.outputs[0].datatype = DataType::kInt64;
  signature.outputs[0].shape = Dims{-1, 4};
  const auto nothing = [](auto, const auto&) { return RunResult(); };
  add("one", std::make_unique<FakeModel>(signature, nothing));
  EXPECT_THAT(refusal(config_of({kFirst, {.model = "one", .input_map = {{"x", "a"}}, .output_map = {{"y", "b"}}}})),
              HasSubstr("tensor 'a' at model 'one' is INT64 and FP32"));
  signature.outputs[0].datatype = DataType::kFp32;
  add("one", std::make_unique<FakeModel>(signature, nothing));
  EXPECT_THAT(refusal(config_of({kFirst, {.model = "one", .input_map = {{"x", "a"}}, .output_map = {{"y", "b"}}}})),
              HasSubstr("tensor 'a' at model 'one' has shapes [-1,4] and [-1,3]"));
  ModelConfig config = config_of({kFirst});
  config.inputs = {named("in", "INT32")};
  EXPECT_THAT(refusal(config), HasSubstr("tensor 'in' at model 'one' is INT32 and FP32"));
  config.inputs = {named("in")};
  config.inputs[0].dims = {5, 3};
  config.inputs[0].has_dims = true;
  EXPECT_EQ(refusal(config), "no error");
}

TEST_F(EnsembleTest, ABatchOfOneIsAddedAndTakenAway) {
  add_identity("one", 4, {-1, 2});
  add_identity("ten", 0, {2});
  ModelConfig config = config_of({kFirst, kSecond});
  config.inputs = {sized("in", {2})};
  config.outputs = {sized("a", {2}), sized("b", {2})};
  add_ensemble("plain", config);
  Answers answers;
  submit("plain", {floats("in", {1, 2})}, answers);
  answers.wait();
  ASSERT_TRUE(answers.results[0].status.ok()) << answers.results[0].status.message();
  EXPECT_THAT(seen_shapes, ElementsAre(Dims{1, 2}, Dims{2}));
  for (const InferTensor& output : answers.results[0].outputs) {
    EXPECT_EQ(output.shape, Dims({2}));
    EXPECT_THAT(values_of(output), ElementsAre(1, 2));
  }

  config.max_batch_size = 4;
  add_ensemble("batched", config);
  InferTensor input = floats("in", {1, 2, 3, 4});
  input.shape = {1, 2};
  input.tensor = floats("in", {3, 4}).tensor.as_view({1, 2}, {2, 1}, 0);
  Answers one;
  submit("batched", {input}, one);
  one.wait();
  ASSERT_TRUE(one.results[0].status.ok()) << one.results[0].status.message();
  EXPECT_EQ(one.results[0].outputs[0].shape, Dims({1, 2}));
  EXPECT_EQ(one.results[0].outputs[1].shape, Dims({1, 2}));
  EXPECT_EQ(one.results[0].outputs[1].tensor.sizes(), Dims({1, 2}));
  input.shape = {2, 2};
  input.tensor = floats("in", {1, 2, 3, 4}).tensor.as_view({2, 2}, {2, 1}, 0);
  Answers two;
  submit("batched", {input}, two);
  two.wait();
  EXPECT_THAT(std::string(two.results[0].status.message()),
              HasSubstr("unexpected shape for input 'x' for model 'ten'"));
}

TEST_F(EnsembleTest, AWholeBatchIsATensorOfAModelWithoutBatches) {
  add_identity("one", 0, {-1, 2});
  add_identity("ten", 4, {-1, 2});
  ModelConfig config = config_of({kFirst, kSecond});
  config.inputs = {sized("in", {2})};
  config.outputs = {sized("b", {2})};
  config.max_batch_size = 4;
  add_ensemble("all", config);
  InferTensor input = floats("in", {1, 2, 3, 4});
  input.shape = {2, 2};
  input.tensor = input.tensor.as_view({2, 2}, {2, 1}, 0);
  Answers answers;
  submit("all", {input}, answers);
  answers.wait();
  ASSERT_TRUE(answers.results[0].status.ok()) << answers.results[0].status.message();
  EXPECT_THAT(seen_shapes, ElementsAre(Dims{2, 2}, Dims{2, 2}));
  EXPECT_EQ(answers.results[0].outputs[0].shape, Dims({2, 2}));
}

TEST_F(EnsembleTest, ReshapesAsItsConfigurationSays) {
  add_identity("one", 0, {2, -1});
  ModelConfig config = config_of({kFirst});
  config.inputs = {sized("in", {4})};
  config.outputs = {sized("a", {1, 4})};
  for (ModelConfig::TensorConfig* tensor : {&config.inputs[0], &config.outputs[0]}) {
    tensor->reshape = {2, 2};
    tensor->has_reshape = true;
  }
  add_ensemble("all", config);
  Answers answers;
  submit("all", {floats("in", {1, 2, 3, 4})}, answers);
  answers.wait();
  ASSERT_TRUE(answers.results[0].status.ok()) << answers.results[0].status.message();
  EXPECT_THAT(seen_shapes, ElementsAre(Dims{2, 2}));
  EXPECT_EQ(answers.results[0].outputs[0].shape, Dims({1, 4}));
  EXPECT_EQ(answers.results[0].outputs[0].tensor.sizes(), Dims({1, 4}));
  config.inputs[0].reshape = {4, 1};
  EXPECT_THAT(refusal(config), HasSubstr("tensor 'in' at model 'one' has shapes [4,1] and [2,-1]"));
  // The size that steps produce may differ from the configuration.
  config.inputs[0].has_reshape = false;
  config.inputs[0].dims = {2, -1};
  add_ensemble("all", config);
  InferTensor input = floats("in", {1, 2, 3, 4, 5, 6});
  input.shape = {2, 3};
  input.tensor = input.tensor.as_view({2, 3}, {3, 1}, 0);
  Answers wrong;
  submit("all", {input}, wrong);
  wrong.wait();
  EXPECT_THAT(std::string(wrong.results[0].status.message()), HasSubstr("in ensemble 'all', reshape of 'a': expected"));
}

TEST_F(EnsembleTest, UnsignedInputsKeepTheirType) {
  add_identity("one", 0, {-1}, DataType::kUint32);
  ModelConfig config = config_of({kFirst});
  add_ensemble("all", config);
  EXPECT_EQ(models_["all"]->signature().inputs[0].datatype, DataType::kUint32);
  InferTensor input = floats("in", {});
  input.datatype = DataType::kInt64;  // as it was at the time of the split
  input.tensor = Tensor::empty(Dims{2}, DType::kInt64);
  std::fill_n(input.tensor.data<int64_t>(), 2, 1);
  input.shape = {2};
  Answers answers;
  submit("all", {input}, answers);
  answers.wait();
  EXPECT_TRUE(answers.results[0].status.ok()) << answers.results[0].status.message();
}

TEST_F(EnsembleTest, LabelsAreThoseOfTheStepThatMakesTheOutput) {
  const std::string file = ::testing::TempDir() + "/ensemble_labels.txt";
  std::ofstream(file) << "cat\ndog\n";
  ModelConfig labeled;
  labeled.outputs = {named("y")};
  labeled.outputs[0].label_filename = file;
  add_identity("one", 0, {-1}, DataType::kFp32, labeled);
  add_identity("ten", 0, {-1});
  ModelConfig config = config_of({kFirst, kSecond});
  config.outputs = {named("a"), named("b")};
  add_ensemble("all", config);
  EXPECT_THAT(models_["all"]->class_labels("a"), ElementsAre("cat", "dog"));
  EXPECT_TRUE(models_["all"]->class_labels("b").empty());
  std::ofstream(file) << "other\n";
  config.outputs[0].label_filename = file;
  add_ensemble("all", config);
  EXPECT_THAT(models_["all"]->class_labels("a"), ElementsAre("other"));
}

TEST_F(EnsembleTest, LabelsAreThoseOfTheOutputByWhateverNameItIsGiven) {
  const std::string file = ::testing::TempDir() + "/ensemble_alias_labels.txt";
  std::ofstream(file) << "cat\ndog\n";
  ModelConfig labeled;
  labeled.outputs = {named("y")};
  labeled.outputs[0].label_filename = file;
  Signature signature = signature_of({"x"}, {"y"});
  signature.outputs[0].aliases = {"OUTPUT__0"};
  const auto run = [](std::span<const InferTensor* const> inputs, const auto&) {
    RunResult result;
    result.outputs = {*inputs[0]};
    result.outputs[0].name = "y";
    return result;
  };
  add("one", std::make_unique<FakeModel>(std::move(signature), run), labeled);
  ModelConfig config = config_of({{.model = "one", .input_map = {{"x", "in"}}, .output_map = {{"OUTPUT__0", "a"}}}});
  config.outputs = {named("a")};
  add_ensemble("all", config);
  EXPECT_THAT(models_["all"]->class_labels("a"), ElementsAre("cat", "dog"));
}

TEST_F(EnsembleTest, AnswersSayWhereInASequenceTheyAre) {
  add_plus("one", 1);
  add_ensemble("all", config_of({kFirst}));
  InferRequest request;
  request.inputs = {floats("in", {1})};
  request.input_indices = {0};
  request.sequence.number = 7;
  request.is_sequence_start = true;
  Answers answers, none;
  models_["all"]->submit(std::move(request), answers);
  answers.wait();
  const ParameterMap expected{{"sequence_end", false}, {"sequence_id", int64_t{7}}, {"sequence_start", true}};
  EXPECT_EQ(answers.results[0].parameters, expected);
  submit("all", {floats("in", {1})}, none);
  none.wait();
  EXPECT_TRUE(none.results[0].parameters.empty());
}

}  // namespace
}  // namespace tensord::server::fixtures::ensemble_test
