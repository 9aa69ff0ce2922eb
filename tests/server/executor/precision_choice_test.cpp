// `precision: auto`, with models whose times and outputs the tests decide.
#include "server/executor/model/precision_choice.h"

#include <gmock/gmock.h>

#include <map>

#include "core/base/error.h"
#include "tests/server/fake_models.h"

namespace tensord::server::precision_choice_test {
namespace {

using ::testing::HasSubstr;

// How a model behaves in one precision.
struct Behavior {
  int64_t ns = 100;
  double error = 0;  // added to the output
  std::string failure = {};
};

InferTensor tensor(const std::string& name, const Tensor& data) {
  InferTensor out;
  out.name = name;
  out.shape = data.sizes();
  out.tensor = data;
  return out;
}

class PrecisionChoice : public ::testing::Test {
 protected:
  // The output is [10, 5 and the error].
  std::unique_ptr<Model> load(const std::string& precision) {
    ++loads_;
    const Behavior behavior = behaviors_.at(precision);
    if (behavior.failure == "load") fail(ErrorCode::kUnimplemented, "not in ", precision);
    Signature signature = fixtures::signature_of({"x"}, {"y"});
    signature.keeps_state = keeps_state_;
    const auto run = [this, behavior](std::span<const InferTensor* const> inputs, const auto&) {
      inputs_.push_back(inputs[0]->tensor.data<float>()[0]);
      clock_.advance_ns(behavior.ns);
      if (!behavior.failure.empty()) fail(ErrorCode::kInvalidArgument, behavior.failure);
      const Tensor out = Tensor::empty(Dims{outputs_}, DType::kFloat64);
      if (outputs_ > 0) out.data<double>()[0] = is_silent_ ? 0 : 10;
      if (outputs_ > 1) out.data<double>()[1] = is_silent_ ? 0 : 5 + behavior.error;
      RunResult result;
      std::vector<InferTensor>& outputs = is_decoupled_ ? result.responses.emplace_back() : result.outputs;
      outputs.push_back(tensor("y", out.to(dtype_)));
      return result;
    };
    return std::make_unique<fixtures::FakeModel>(signature, run);
  }

  std::unique_ptr<Model> choose() {
    const auto requests = [this](const Signature&) {
      std::vector<WarmupRequest> out;
      for (int i = 0; i < requests_; ++i) {
        WarmupRequest& request = out.emplace_back(WarmupRequest{.name = "one", .is_configured = is_configured_});
        const Tensor number = Tensor::empty(Dims{1}, DType::kFloat32);
        number.data<float>()[0] = input_;
        request.inputs.push_back(tensor("x", number));
        request.input_indices = {0};
      }
      return out;
    };
    return load_in_fastest_precision([this](const std::string& precision) { return load(precision); }, requests,
                                     {.tolerance = 0.02, .clock = clock_});
  }
  std::string chosen() { return choose()->precision().name; }
  std::string reason() { return choose()->precision().reason; }

  std::map<std::string, Behavior> behaviors_{{"f32", {}}, {"bf16", {}}, {"int8", {}}};
  ManualClock clock_;
  DType dtype_ = DType::kFloat32;
  bool keeps_state_ = false, is_configured_ = true, is_decoupled_ = false, is_silent_ = false;
  int64_t outputs_ = 2;
  float input_ = 3;
  int requests_ = 2, loads_ = 0;
  std::vector<float> inputs_;
};

TEST_F(PrecisionChoice, TheFastestWithinTheTolerance) {
  behaviors_ = {{"f32", {.ns = 100}}, {"bf16", {.ns = 60, .error = 0.1}}, {"int8", {.ns = 40, .error = 0.3}}};
  EXPECT_EQ(chosen(), "bf16");
  EXPECT_EQ(reason(), "bf16 takes 60 % of the time of f32 and differs by 1 %; int8 differs by more than 2 % (3 %)");
  behaviors_["int8"].error = 0.1;
  EXPECT_EQ(chosen(), "int8");
  behaviors_["int8"].ns = 70;
  EXPECT_EQ(chosen(), "bf16");
}

TEST_F(PrecisionChoice, StaysF32WhereLittleIsGained) {
  behaviors_ = {{"f32", {.ns = 100}}, {"bf16", {.ns = 96}}, {"int8", {.ns = 200}}};
  EXPECT_EQ(chosen(), "f32");
  EXPECT_THAT(reason(), HasSubstr("int8 takes 200 %"));
  behaviors_["bf16"].ns = 94;
  EXPECT_EQ(chosen(), "bf16");
}

TEST_F(PrecisionChoice, OtherOutputsMustBeEqual) {
  dtype_ = DType::kInt64;
  behaviors_ = {{"f32", {.ns = 100}}, {"bf16", {.ns = 50}}, {"int8", {.ns = 40, .error = 1}}};
  EXPECT_EQ(chosen(), "bf16");
  EXPECT_THAT(reason(), HasSubstr("int8 differs by more than 2 %"));
}

TEST_F(PrecisionChoice, NumbersThatAreNotFiniteMustBeTheSame) {
  behaviors_ = {{"f32", {.ns = 100}}, {"bf16", {.ns = 50, .error = NAN}}, {"int8", {.ns = 40, .error = INFINITY}}};
  EXPECT_EQ(chosen(), "f32");
  for (auto& [precision, behavior] : behaviors_) behavior.error = NAN;
  EXPECT_EQ(chosen(), "int8");
}

TEST_F(PrecisionChoice, ResponsesAreComparedToo) {
  is_decoupled_ = true;
  behaviors_ = {{"f32", {.ns = 100}}, {"bf16", {.ns = 60, .error = 0.1}}, {"int8", {.ns = 40, .error = 0.3}}};
  EXPECT_EQ(chosen(), "bf16");
}

TEST_F(PrecisionChoice, NothingToCompare) {
  behaviors_["bf16"].ns = 1;
  requests_ = 0;
  EXPECT_EQ(chosen(), "f32");
  EXPECT_THAT(reason(), HasSubstr("no warm-up requests"));
  requests_ = 1;
  keeps_state_ = true;
  loads_ = 0;
  EXPECT_EQ(chosen(), "f32");
  EXPECT_EQ(loads_, 1);
  EXPECT_THAT(reason(), HasSubstr("keeps state"));
}

TEST_F(PrecisionChoice, OutputsThatTellNothing) {
  behaviors_["int8"].ns = 1;
  EXPECT_EQ(chosen(), "int8");
  is_silent_ = true;
  EXPECT_EQ(chosen(), "f32");
  EXPECT_EQ(reason(), "a warm-up request has nothing but zeros in output 'y'");
  is_silent_ = false;
  outputs_ = 0;
  EXPECT_EQ(chosen(), "f32");
}

TEST_F(PrecisionChoice, FailuresLeaveF32) {
  behaviors_["bf16"] = {.ns = 1, .failure = "load"};
  EXPECT_EQ(reason(), "not measured: not in bf16");
  behaviors_["bf16"].failure = "no";
  EXPECT_EQ(chosen(), "f32");
  behaviors_["f32"].failure = "load";
  EXPECT_THROW(choose(), Error);
}

TEST_F(PrecisionChoice, ZerosAreReplaced) {
  choose();
  EXPECT_THAT(inputs_, ::testing::Each(3.0f));
  input_ = 0;
  for (const bool is_configured : {false, true}) {
    is_configured_ = is_configured;
    inputs_.clear();
    choose();
    EXPECT_THAT(inputs_, ::testing::Contains(::testing::Gt(0.0f)));
  }
}

}  // namespace
}  // namespace tensord::server::precision_choice_test
