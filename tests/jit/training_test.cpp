// Modules loaded for training: tests/jit/data/training.pt, see make_training_archive.py there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/jit/runtime/module.h"
#include "core/ops/run.h"
#include "tests/support/places.h"

namespace tensord::jit::training_test {
namespace {

using ops::Value;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

const std::string kArchive = std::string(tests_folder()) + "/jit/data/training.pt";

Tensor tensor(const Dims& sizes, std::initializer_list<float> values) {
  const Tensor out = Tensor::empty(sizes, DType::kFloat32);
  std::copy(values.begin(), values.end(), out.data<float>());
  return out;
}

std::vector<float> numbers(const Tensor& tensor) {
  const Tensor dense = tensor.contiguous();
  return {dense.data<float>(), dense.data<float>() + dense.numel()};
}

std::vector<std::string> names(const std::vector<std::pair<std::string, Tensor>>& members) {
  std::vector<std::string> out;
  for (const auto& [name, tensor] : members) out.push_back(name);
  return out;
}

Tensor member(const Module& module, const std::string& name) {
  for (const auto& [known, tensor] : module.named_tensors()) {
    if (known == name) return tensor;
  }
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

Value run(const Module& module, const char* method, std::vector<Value> arguments) {
  Frame frame;
  return module.method(method).run(frame, arguments);
}

std::vector<bool> flags(const Value& list) {
  std::vector<bool> out;
  for (const Value& item : list.to_list()->items) out.push_back(item.to_bool());
  return out;
}

std::shared_ptr<Module> load(bool for_training, bool optimize = true) {
  LoadOptions options;
  options.for_training = for_training;
  options.optimize = optimize;
  return Module::load(kArchive, options);
}

const auto kNear = FloatNear(1e-5F);

// With and without the passes.
class TrainingTest : public ::testing::TestWithParam<bool> {
 protected:
  std::shared_ptr<Module> module_ = load(true, GetParam());
  Tensor x_ = tensor({2, 2}, {1, 2, 3, -1});
  Tensor y_ = tensor({2, 2}, {0, 0, 0, 0});
};

INSTANTIATE_TEST_SUITE_P(Passes, TrainingTest, ::testing::Bool());

TEST_P(TrainingTest, KnowsItsParametersAndBuffers) {
  EXPECT_THAT(names(module_->named_parameters()),
              ElementsAre("norm.weight", "norm.bias", "first.weight", "first.bias", "head.scale"));
  EXPECT_THAT(names(module_->named_buffers()),
              ElementsAre("table", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"));
  for (const auto& [name, parameter] : module_->named_parameters()) {
    EXPECT_EQ(autograd::requires_grad(parameter), name != "head.scale") << name;
    EXPECT_TRUE(autograd::is_leaf(parameter)) << name;
  }
  for (const auto& [name, buffer] : module_->named_buffers()) EXPECT_FALSE(autograd::requires_grad(buffer)) << name;
}

// PyTorch 1.13: model.training_step(x, y).backward().
TEST_P(TrainingTest, GradientsReachTheParameters) {
  const Tensor loss = run(*module_, "training_step", {Value(x_), Value(y_)}).to_tensor();
  EXPECT_FLOAT_EQ(loss.item_double(), 410.3125F);
  ASSERT_TRUE(autograd::requires_grad(loss));
  autograd::backward(loss);
  const Tensor weight = member(*module_, "first.weight");
  EXPECT_TRUE(weight.is_same(member(*module_, "head.weight")));
  EXPECT_THAT(numbers(autograd::grad(weight)), Pointwise(FloatNear(2e-3F), {272.F, -170.5F, 232.25F, 576.F}));
  EXPECT_THAT(numbers(autograd::grad(member(*module_, "first.bias"))), Pointwise(FloatNear(2e-3F), {42.5F, 160.F}));
  EXPECT_FALSE(autograd::grad(member(*module_, "head.scale")).defined());
}

TEST_P(TrainingTest, ScriptsTrainThemselves) {
  const Tensor weight = member(*module_, "first.weight");
  EXPECT_FLOAT_EQ(run(*module_, "step", {Value(x_), Value(y_), Value(0.001)}).to_tensor().item_double(), 410.3125F);
  EXPECT_THAT(numbers(weight), Pointwise(kNear, {0.728F, -0.8295F, 0.26775F, 1.424F}));
  EXPECT_THAT(numbers(autograd::grad(weight)), Pointwise(kNear, {0.F, 0.F, 0.F, 0.F}));
  EXPECT_LT(run(*module_, "step", {Value(x_), Value(y_), Value(0.001)}).to_tensor().item_double(), 410);
}

TEST_P(TrainingTest, ScriptsAskForGradients) {
  const Value both = run(*module_, "second_order", {Value(x_)});
  EXPECT_THAT(numbers(both.to_tuple()->items[0].to_tensor()), Pointwise(kNear, {3.F, 12.F, 27.F, 3.F}));
  EXPECT_THAT(numbers(both.to_tuple()->items[1].to_tensor()), Pointwise(kNear, {6.F, 12.F, 18.F, -6.F}));
  // Equal expressions are different tensors: only one of the two gets the gradient.
  autograd::set_requires_grad(x_);
  EXPECT_THAT(numbers(run(*module_, "one_of_two", {Value(x_)}).to_tensor()), Pointwise(kNear, {2.F, 4.F, 6.F, -2.F}));
}

TEST_P(TrainingTest, ScriptsSeeTheGradMode) {
  EXPECT_THAT(flags(run(*module_, "flags", {Value(tensor({2}, {1, 1}))})),
              ElementsAre(true, false, true, true, false, false, true, false, false, true));
  const NoGradGuard guard;
  EXPECT_THAT(flags(run(*module_, "flags", {Value(tensor({2}, {1, 1}))})),
              ElementsAre(true, false, true, false, true, false, false, false, false, false));
}

TEST_P(TrainingTest, TheGradModeIsRestored) {
  EXPECT_THROW(run(*module_, "raise_without_grad", {Value(x_)}), Error);
  EXPECT_TRUE(is_grad_enabled());
  run(*module_, "turn_off", {});
  EXPECT_TRUE(is_grad_enabled());
}

TEST_P(TrainingTest, ContextsAreLeftAfterAnError) {
  const auto notes = [] { return Value(ops::make_list(ops::int_type(), {})); };
  const auto numbers_of = [](const Value& list) {
    std::vector<int64_t> out;
    for (const Value& item : list.to_list()->items) out.push_back(item.to_int());
    return out;
  };
  EXPECT_THAT(numbers_of(run(*module_, "noted", {Value(false), notes()})), ElementsAre(1, 1, 2, 2));
  Frame frame;
  for (int i = 0; i < 3; ++i) {
    const Value seen = notes();
    const std::vector<Value> arguments{Value(true), seen};
    EXPECT_THROW(module_->method("noted").run(frame, arguments), Error);
    EXPECT_THAT(numbers_of(seen), ElementsAre(1, 1, 2, 2));
  }
}

TEST_P(TrainingTest, TensorsAreNewInEveryRun) {
  EXPECT_THAT(numbers(run(*module_, "leaf", {}).to_tensor()), ElementsAre(3, 3));
  EXPECT_THAT(numbers(run(*module_, "leaf", {}).to_tensor()), ElementsAre(3, 3));
}

TEST_P(TrainingTest, ObeysTrainingMode) {
  const Tensor ones = tensor({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_FALSE(module_->is_training());
  EXPECT_THAT(numbers(run(*module_, "normalized", {Value(ones)}).to_tensor()),
              Pointwise(FloatNear(1e-3F), numbers(ones)));
  module_->set_training(true);
  EXPECT_TRUE(module_->is_training());
  run(*module_, "normalized", {Value(ones)});
  EXPECT_THAT(numbers(member(*module_, "norm.running_mean")), Pointwise(kNear, {0.4F, 0.5F}));
  EXPECT_EQ(member(*module_, "norm.num_batches_tracked").item_int(), 1);
  module_->set_training(false);
  run(*module_, "normalized", {Value(ones)});
  EXPECT_EQ(member(*module_, "norm.num_batches_tracked").item_int(), 1);
}

TEST_P(TrainingTest, WeightsAreItsOwn) {
  const Tensor weight = member(*module_, "first.weight");
  {
    const NoGradGuard guard;
    ops::call_by_name("aten::zero_", weight);
  }
  EXPECT_EQ(numbers(run(*module_, "forward", {Value(x_)}).to_tensor())[0], 0);
  EXPECT_EQ(numbers(member(*load(true), "first.weight"))[0], 1);
}

TEST(ServingTest, RunsInInferenceMode) {
  const std::shared_ptr<Module> module = load(false);
  const Tensor x = tensor({2, 2}, {1, 2, 3, -1});
  const Tensor loss = run(*module, "training_step", {Value(x), Value(x)}).to_tensor();
  EXPECT_FALSE(autograd::requires_grad(loss));
  EXPECT_TRUE(loss.impl()->is_inference);
  for (const auto& [name, parameter] : module->named_parameters()) {
    EXPECT_FALSE(autograd::requires_grad(parameter)) << name;
  }
  EXPECT_TRUE(is_grad_enabled());
  EXPECT_FALSE(is_inference_mode());
  EXPECT_THROW(module->set_training(true), Error);
}

}  // namespace
}  // namespace tensord::jit::training_test
