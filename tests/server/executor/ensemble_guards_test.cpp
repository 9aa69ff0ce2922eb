// Every check of an ensemble's plan and of a run: a case that passes and one that fails.
#include "server/executor/strategies/ensemble_tensors.h"
#include "tests/server/error_of.h"
#include "tests/server/executor/ensemble_fixture.h"

namespace tensord::server::fixtures::ensemble_guards_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EnsembleGuardsTest : public EnsembleTest {
 protected:
  static EnsembleStepConfig step(const std::string& model, std::map<std::string, std::string> inputs,
                                 std::map<std::string, std::string> outputs) {
    return {.model = model, .version = -1, .input_map = std::move(inputs), .output_map = std::move(outputs)};
  }

  // Returns y = x and z, each of a type of its own.
  Signature two_outputs() const {
    Signature signature = signature_of({"x"}, {"y", "z"});
    signature.inputs[0].datatype = signature.outputs[0].datatype = DataType::kFp32;
    signature.outputs[1].datatype = DataType::kInt64;
    signature.inputs[0].shape = signature.outputs[0].shape = Dims{2};
    signature.outputs[1].shape = Dims{5};
    return signature;
  }
  void add_signature(const std::string& name, Signature signature) {
    add(name, std::make_unique<FakeModel>(std::move(signature), [](std::span<const InferTensor* const> inputs, auto&&) {
          RunResult result;
          if (!inputs.empty() && inputs[0]) result.outputs.push_back(*inputs[0]);
          if (!result.outputs.empty()) result.outputs[0].name = "y";
          if (result.outputs.empty()) result.outputs.push_back(floats("y", {0}));
          return result;
        }));
  }

  // Runs "all" on in = {1, 2}.
  InferResult run_all(std::vector<InferTensor> inputs = {floats("in", {1, 2})}) {
    Answers answers;
    submit("all", std::move(inputs), answers);
    answers.wait();
    return answers.results.back();
  }
};

TEST_F(EnsembleGuardsTest, EnsemblesNestAsDeepAsTheLimit) {
  add_plus("e0", 1);
  for (int depth = 1; depth <= 17; ++depth) {
    const ModelConfig config = config_of(
        {step(concat("e", depth - 1), {{depth == 1 ? "x" : "in", "in"}}, {{depth == 1 ? "y" : "out", "out"}})});
    if (depth == 17) {
      EXPECT_THAT(refusal(config, "e17"), HasSubstr("ensemble 'e17' lies deeper than 16 ensembles"));
    } else {
      add_ensemble(concat("e", depth), config);
    }
  }
  models_["all"] = models_["e16"];
  const InferResult result = run_all();
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_THAT(values_of(result.outputs[0]), ElementsAre(2, 3));
  models_["e0"] = models_["e1"];  // reloaded as one that leads to itself
  const ModelConfig back = config_of({step("e3", {{"in", "x"}}, {{"out", "y"}})});
  add_ensemble("loop", back);
  models_["e0"] = models_["loop"];
  EXPECT_THAT(std::string(run_all().status.message()), HasSubstr("more ensembles lie in each other than may"));
}

TEST_F(EnsembleGuardsTest, OneEnsembleMayBeReachedByTwoWays) {
  add_plus("one", 1);
  add_ensemble("inner", config_of({step("one", {{"x", "in"}}, {{"y", "out"}})}));
  add_ensemble(
      "all", config_of({step("inner", {{"in", "in"}}, {{"out", "a"}}), step("inner", {{"in", "a"}}, {{"out", "b"}})}));
  EXPECT_THAT(values_of(run_all().outputs.at(0)), ElementsAre(3, 4));
}

TEST_F(EnsembleGuardsTest, AnEnsembleHasAnOutputThatAStepMakes) {
  add_plus("one", 1);
  EXPECT_THAT(refusal(config_of({step("one", {{"x", "in"}}, {})})), HasSubstr("ensemble 'all' has no output"));
  ModelConfig config = config_of({kFirst});
  config.outputs = {named("in")};
  EXPECT_THAT(refusal(config), HasSubstr("no step makes output 'in'"));
}

TEST_F(EnsembleGuardsTest, StepsGetEveryInputThatTheyNeed) {
  Signature signature = signature_of({"p", "q"}, {"y"});
  add_signature("sum", signature);
  const ModelConfig config = config_of({step("sum", {{"p", "in"}}, {{"y", "a"}})});
  EXPECT_THAT(refusal(config), HasSubstr("input_map of step 'sum' has no input 'q'"));
  signature.inputs[1].is_optional = true;
  add_signature("sum", signature);
  add_ensemble("all", config);
  EXPECT_THAT(values_of(run_all().outputs.at(0)), ElementsAre(1, 2));
  signature.inputs[1].is_optional = false;
  signature.inputs[1].aliases = {"r"};
  add_signature("sum", signature);
  EXPECT_EQ(refusal(config_of({step("sum", {{"p", "in"}, {"r", "in"}}, {{"y", "a"}})})), "no error");
}

TEST_F(EnsembleGuardsTest, OnlyAnOptionalInputMayFeedAnOptionalOne) {
  Signature signature = signature_of({"x"}, {"y"});
  signature.max_batch_size = 4;
  add_signature("one", signature);
  ModelConfig config = config_of({kFirst});
  config.max_batch_size = 4;
  config.inputs = {named("in")};
  config.inputs[0].is_optional = true;
  EXPECT_THAT(refusal(config), HasSubstr("input 'in' is optional, but model 'one' needs it"));
  signature.inputs[0].is_optional = true;
  add_signature("one", signature);
  add_ensemble("all", config);
  const InferResult result = run_all({});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_THAT(values_of(result.outputs.at(0)), ElementsAre(0));
}

// The configured output is compared with the step's output, by type and by shape.
TEST_F(EnsembleGuardsTest, ConfiguredOutputsAreThoseOfTheirSteps) {
  add_signature("one", two_outputs());
  ModelConfig config = config_of({step("one", {{"x", "in"}}, {{"y", "a"}, {"z", "b"}})});
  config.outputs = {named("b", "INT64"), named("a", "FP32")};
  EXPECT_EQ(refusal(config), "no error");
  config.outputs = {named("b"), named("a")};
  add_ensemble("all", config);
  const auto& outputs = models_["all"]->signature().outputs;
  EXPECT_EQ(outputs[0].datatype, DataType::kInt64);
  EXPECT_EQ(outputs[0].shape, Dims{5});
  EXPECT_EQ(outputs[1].datatype, DataType::kFp32);
  EXPECT_EQ(outputs[1].shape, Dims{2});
  config.outputs = {named("a", "INT64")};
  EXPECT_THAT(refusal(config), HasSubstr("tensor 'a' at model 'one' is FP32 and INT64"));
  config.outputs = {sized("a", {3})};
  EXPECT_THAT(refusal(config), HasSubstr("tensor 'a' at model 'one' has shapes [2] and [3]"));
  config.outputs = {sized("a", {0})};
  EXPECT_THAT(refusal(config), HasSubstr("tensor 'a' at model 'one' has shapes [2] and [0]"));
  config.outputs = {sized("a", {2, 1})};
  EXPECT_THAT(refusal(config), HasSubstr("tensor 'a' at model 'one' has shapes [2] and [2,1]"));
}

TEST_F(EnsembleGuardsTest, OnlyTheTensorThatIsTakenMustFit) {
  add_signature("one", two_outputs());
  add_identity("ten", 0, {2});
  EXPECT_EQ(refusal(config_of({step("one", {{"x", "in"}}, {{"y", "a"}, {"z", "c"}}), kSecond})), "no error");
  EXPECT_THAT(refusal(config_of({step("one", {{"x", "in"}}, {{"y", "c"}, {"z", "a"}}), kSecond})),
              HasSubstr("tensor 'a' at model 'ten' is INT64 and FP32"));
}

TEST_F(EnsembleGuardsTest, ShapesComeFromStepsWithTheSameBatchesOnly) {
  for (const int64_t step_batch : {0, 4}) {
    for (const int32_t own_batch : {0, 4}) {
      add_identity("one", step_batch, {-1, 2});
      ModelConfig config = config_of({kFirst});
      config.max_batch_size = own_batch;
      add_ensemble("all", config);
      const Signature& signature = models_["all"]->signature();
      const bool is_same = (step_batch > 0) == (own_batch > 0);
      EXPECT_EQ(signature.inputs[0].shape.has_value(), is_same) << step_batch << " " << own_batch;
      EXPECT_EQ(signature.outputs[0].shape.has_value(), is_same);
      EXPECT_EQ(signature.inputs[0].datatype, DataType::kFp32);
    }
  }
}

TEST_F(EnsembleGuardsTest, AnswersOfADecoupledEnsembleAreNotKept) {
  add_items("items");
  ModelConfig config = config_of({step("items", {{"x", "in"}}, {{"y", "out"}})});
  add_ensemble("all", config);  // decoupled, as its step is
  config.has_response_cache = true;
  EXPECT_THAT(error_of([&] { add_ensemble("all", config); }).what(),
              HasSubstr("response_cache cannot be used with the decoupled"));
  add_plus("items", 1);
  EXPECT_NO_THROW(add_ensemble("all", config));
}

TEST_F(EnsembleGuardsTest, AnOutputThatNobodyPromisedIsMissedWhenItRuns) {
  Signature signature = signature_of({"x"}, {"y"});
  signature.outputs_are_complete = false;
  add_signature("one", signature);
  add_ensemble("all", config_of({step("one", {{"x", "in"}}, {{"y", "a"}, {"other", "b"}})}));
  const InferResult result = run_all();
  EXPECT_EQ(result.status.code(), absl::StatusCode::kInvalidArgument) << result.status;
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("in ensemble 'all', "));
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("'other'"));
}

TEST_F(EnsembleGuardsTest, AStepThatWasLoadedAgainAsAnotherModel) {
  add_plus("one", 1);
  add_ensemble("all", config_of({kFirst}));
  add_function("one", {"x"}, {"z"}, [](const auto&) { return std::vector<InferTensor>{floats("z", {1})}; });
  EXPECT_THAT(std::string(run_all().status.message()), HasSubstr("unexpected inference output 'y' for model 'one'"));
  add_items("one");
  EXPECT_THAT(std::string(run_all().status.message()), HasSubstr("loaded again with another transaction policy"));
  models_.erase("one");
  EXPECT_EQ(run_all().status.code(), absl::StatusCode::kNotFound);
}

TEST_F(EnsembleGuardsTest, TextsGoFromStepToStep) {
  Signature signature = signature_of({"x"}, {"y"});
  signature.inputs[0].datatype = signature.outputs[0].datatype = DataType::kBytes;
  signature.inputs[0].takes_bytes = true;
  add_signature("one", signature);
  add_signature("ten", signature);
  add_ensemble("all", config_of({kFirst, kSecond}));
  InferTensor text;
  text.name = "in";
  text.datatype = DataType::kBytes;
  text.shape = {1};
  text.strings.emplace_back("word");
  const InferResult result = run_all({text});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(std::string(result.outputs.at(0).strings.at(0)), "word");
}

// Models may return any strides; requests are row-major.
TEST_F(EnsembleGuardsTest, TransposedTensorsAreMadeRowMajor) {
  add_function("one", {"x"}, {"y"}, [](const auto&) {
    InferTensor out = floats("y", {1, 2, 3, 4, 5, 6});
    out.shape = {3, 2};
    out.tensor = out.tensor.as_view({3, 2}, {1, 3}, 0);
    return std::vector<InferTensor>{out};
  });
  bool is_contiguous = false;
  add_function("ten", {"x"}, {"y"}, [&](const std::vector<InferTensor>& inputs) {
    is_contiguous = inputs[0].tensor.is_contiguous();
    InferTensor out = inputs[0];
    out.name = "y";
    return std::vector<InferTensor>{out};
  });
  add_ensemble("all", config_of({kFirst, kSecond}));
  const InferResult result = run_all();
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_TRUE(is_contiguous);
  EXPECT_THAT(values_of(result.outputs[0]), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST_F(EnsembleGuardsTest, ABatchOfOneIsAddedOrTakenWhereTheSizesAskForIt) {
  using BatchFit = EnsemblePlan::BatchFit;
  struct Case {
    Dims shape;
    BatchFit fit;
    Dims expected;
  };
  for (const Case& c :
       {Case{{2}, {BatchFit::Change::kAdd, 2}, {1, 2}}, Case{{2}, {BatchFit::Change::kAdd, 3}, {2}},
        Case{{2}, {BatchFit::Change::kAdd, 1}, {2}}, Case{{1, 2}, {BatchFit::Change::kTake, 1}, {2}},
        Case{{2, 2}, {BatchFit::Change::kTake, 1}, {2, 2}}, Case{{0, 2}, {BatchFit::Change::kTake, 1}, {0, 2}},
        Case{{1, 2}, {BatchFit::Change::kTake, 2}, {1, 2}}, Case{{}, {BatchFit::Change::kAdd, 1}, {1}},
        Case{{1}, {BatchFit::Change::kTake, 0}, {}}, Case{{1, 2}, {}, {1, 2}}}) {
    InferTensor tensor;
    tensor.shape = c.shape;
    tensor.tensor = Tensor::empty(c.shape, DType::kFloat32);
    fit_batch(tensor, c.fit);
    EXPECT_EQ(tensor.shape, c.expected);
    EXPECT_EQ(tensor.tensor.sizes(), c.expected);
  }
}

TEST_F(EnsembleGuardsTest, OnlyTheTypeThatStandsForADeclaredOneIsSentAsThat) {
  InferTensor tensor;
  for (const auto& [given, declared, expected] : std::vector<std::tuple<DataType, std::optional<DataType>, DataType>>{
           {DataType::kInt64, DataType::kUint32, DataType::kUint32},
           {DataType::kInt64, DataType::kUint64, DataType::kUint64},
           {DataType::kInt32, DataType::kUint16, DataType::kUint16},
           {DataType::kInt32, DataType::kUint32, DataType::kInt32},
           {DataType::kFp32, DataType::kUint32, DataType::kFp32},
           {DataType::kInt64, DataType::kInt64, DataType::kInt64},
           {DataType::kInt64, DataType::kInt32, DataType::kInt64},
           {DataType::kInt64, std::nullopt, DataType::kInt64}}) {
    tensor.datatype = given;
    EXPECT_EQ(wire_type(tensor, declared), expected);
  }
}

TEST_F(EnsembleGuardsTest, ATextNamesASequenceToo) {
  add_plus("one", 1);
  add_ensemble("all", config_of({kFirst}));
  InferRequest request;
  request.inputs = {floats("in", {1})};
  request.input_indices = {0};
  request.sequence.text = "alpha";
  request.is_sequence_end = true;
  Answers answers;
  models_["all"]->submit(std::move(request), answers);
  answers.wait();
  const ParameterMap expected{{"sequence_end", true}, {"sequence_id", "alpha"}, {"sequence_start", false}};
  EXPECT_EQ(answers.results[0].parameters, expected);
}

TEST_F(EnsembleGuardsTest, AnEnsembleThatIsSaidToBeDecoupledIs) {
  add_plus("one", 1);
  ModelConfig config = config_of({kFirst});
  add_ensemble("plain", config);
  EXPECT_FALSE(models_["plain"]->config().is_decoupled);
  config.is_decoupled = true;
  add_ensemble("all", config);
  EXPECT_TRUE(models_["all"]->config().is_decoupled);
}

TEST_F(EnsembleGuardsTest, VersionsOfStepsAreLookedForAsTheyAreSaid) {
  add_plus("one", 1);
  const auto version_of = [&](int64_t version) {
    ModelConfig config = config_of({kFirst});
    config.ensemble_steps[0].version = version;
    EXPECT_EQ(refusal(config), "no error");
    return found_version;
  };
  EXPECT_EQ(version_of(-1), "");
  EXPECT_EQ(version_of(0), "0");
  EXPECT_EQ(version_of(12), "12");
}

TEST_F(EnsembleGuardsTest, TensorsWithoutElementsHaveShapesToo) {
  add_identity("none", 0, {0});
  add_identity("three", 0, {3});
  for (const auto& [first, second] : {std::pair("none", "three"), std::pair("three", "none")}) {
    EXPECT_THAT(
        refusal(config_of({step(first, {{"x", "in"}}, {{"y", "a"}}), step(second, {{"x", "a"}}, {{"y", "b"}})})),
        HasSubstr("has shapes"));
  }
}

// An unknown type or shape is compatible with anything.
TEST_F(EnsembleGuardsTest, TypesThatAreNotKnownFit) {
  add_identity("typed", 0, {2});
  add_plus("one", 1);
  Signature open = signature_of({"x"}, {});
  open.outputs_are_complete = false;
  add_signature("open", open);
  for (const char* first : {"typed", "one", "open"}) {
    for (const char* second : {"typed", "one"}) {
      ModelConfig config =
          config_of({step(first, {{"x", "in"}}, {{"y", "a"}}), step(second, {{"x", "a"}}, {{"y", "out"}})});
      config.outputs = {named("out")};
      add_ensemble("all", config);
      EXPECT_TRUE(run_all().status.ok()) << first << second;
    }
  }
}

TEST_F(EnsembleGuardsTest, AReshapeNeedsToKnowTheShapeOfTheClient) {
  add_plus("one", 1);
  ModelConfig config = config_of({kFirst});
  config.inputs = {named("in", "FP32")};
  config.outputs = {named("a", "FP32")};
  for (ModelConfig::TensorConfig* tensor : {&config.inputs[0], &config.outputs[0]}) {
    tensor->has_reshape = true;
    tensor->reshape = {2, 1};
  }
  add_ensemble("all", config);
  const InferResult result = run_all();
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.outputs[0].shape, (Dims{2}));
}

// Held responses are sent together with the one that they waited for, and only the last one is final.
TEST_F(EnsembleGuardsTest, AnswersThatComeOutOfOrderAreOrdered) {
  add_items("items");
  std::atomic<int> begun = 0;
  add("late",
      std::make_unique<FakeModel>(signature_of({"x"}, {"y"}),
                                  [&](std::span<const InferTensor* const> inputs, const auto&) {
                                    const float x = values_of(*inputs[0])[0];
                                    if (x == 1) {
                                      while (models_["late"]->metrics().counts().success.count < 3) {
                                        std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                      }
                                      std::this_thread::sleep_for(std::chrono::milliseconds(30));
                                    }
                                    ++begun;
                                    RunResult result;
                                    result.outputs = {floats("y", {10 * x})};
                                    return result;
                                  }),
      {}, /*workers=*/2);
  ModelConfig config =
      config_of({step("items", {{"x", "in"}}, {{"y", "a"}}), step("late", {{"x", "a"}}, {{"y", "out"}})});
  config.outputs = {named("out")};
  add_ensemble("all", config);
  Answers answers;
  submit("all", {floats("in", {1, 2, 3, 4})}, answers);
  answers.wait();
  std::vector<float> got;
  for (const InferResult& result : answers.results) {
    for (const InferTensor& output : result.outputs) got.push_back(values_of(output)[0]);
  }
  EXPECT_THAT(got, ElementsAre(10, 20, 30, 40));
  EXPECT_EQ(begun, 4);
}

}  // namespace
}  // namespace tensord::server::fixtures::ensemble_guards_test
