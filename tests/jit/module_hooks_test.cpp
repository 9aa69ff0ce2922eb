// Hooks on the modules of a loaded model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/jit/runtime/module.h"
#include "core/ops/run.h"

namespace tensord::jit::module_hooks_test {
namespace {

using ops::Value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tensors = std::vector<Tensor>;

constexpr const char* kSource = R"(
class Scale(Module):
    __parameters__ = ["weight"]
    weight: Tensor

    def forward(self, x: Tensor, shift: float = 0.0) -> Tensor:
        return x * self.weight + shift

class Block(Module):
    scale: Scale

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        return (self.scale.forward(x, 1.0), x)

class Net(Module):
    block: Block

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.block.forward(x)
        return a + b

    def inner(self, x: Tensor) -> Tensor:
        return self.block.scale.forward(x)

    def around(self, x: Tensor) -> Tensor:
        return self.inner(x)
)";

Tensor vector_of(std::initializer_list<float> values) {
  const Tensor out = Tensor::empty(Dims{static_cast<int64_t>(values.size())}, DType::kFloat32);
  std::copy(values.begin(), values.end(), out.data<float>());
  return out;
}

std::vector<float> numbers(const Tensor& tensor) {
  const Tensor dense = tensor.contiguous();
  return {dense.data<float>(), dense.data<float>() + dense.numel()};
}

std::shared_ptr<Module> make(bool for_training = false) {
  LoadOptions options;
  options.for_training = for_training;
  const auto module = Module::compile(kSource, {{"block.scale.weight", vector_of({2, 3})}}, options);
  if (for_training) autograd::set_requires_grad(module->named_parameters().at(0).second);
  return module;
}

Tensor run(const Module& module, const Tensor& x, const char* method = "forward") {
  Frame frame;
  const Value arguments[] = {x};
  return module.method(method).run(frame, arguments).to_tensor();
}

template <class F>
std::string error_of(F function, ErrorCode code) {
  try {
    function();
  } catch (const Error& error) {
    return error.code() == code ? error.what() : "another code";
  }
  return "no error";
}

TEST(ModuleHooks, SeeAndReplaceWhatGoesInAndOut) {
  const auto module = make();
  const Tensor x = vector_of({1, 2});
  EXPECT_THAT(numbers(run(*module, x)), ElementsAre(4, 9));
  std::vector<std::string> seen;
  auto pre = module->register_forward_pre_hook(
      "block.scale",
      [&](const HookedCall& call, const std::vector<Value>& arguments) -> std::optional<std::vector<Value>> {
        seen.push_back(call.module + ":" + call.schema.arguments.at(1).name);
        EXPECT_EQ(arguments.at(1).to_float(), 1.0);
        return std::vector<Value>{arguments.at(0), Value(10)};  // an int for a float
      });
  auto post = module->register_forward_hook(
      "",
      [&](const HookedCall& call, const std::vector<Value>& arguments, const Value& result) -> std::optional<Value> {
        seen.push_back("model" + call.module);
        EXPECT_THAT(numbers(arguments.at(0).to_tensor()), ElementsAre(1, 2));
        return Value(ops::call_by_name("aten::neg", result.to_tensor()));
      });
  EXPECT_THAT(numbers(run(*module, x)), ElementsAre(-13, -18));
  EXPECT_THAT(seen, ElementsAre("block.scale:shift", "model"));
  pre.remove();
  EXPECT_THAT(numbers(run(*module, x)), ElementsAre(-4, -9));
  post.remove();
  post.remove();
  EXPECT_THAT(numbers(run(*module, x)), ElementsAre(4, 9));
}

TEST(ModuleHooks, AreCalledFromOtherMethodsAndInOrder) {
  const auto module = make();
  std::vector<int> order;
  const auto note = [&](int number) {
    return [&order, number](const HookedCall&, const std::vector<Value>&, const Value&) -> std::optional<Value> {
      order.push_back(number);
      return std::nullopt;
    };
  };
  module->register_forward_hook("block.scale", note(1));
  module->register_forward_hook("block.scale", note(2));
  module->register_forward_hook("block.scale", note(0), true);
  EXPECT_THAT(numbers(run(*module, vector_of({1, 2}), "inner")), ElementsAre(2, 6));
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
}

TEST(ModuleHooks, OtherMethodsHaveNone) {
  const auto module = make();
  int calls = 0;
  module->register_forward_hook("", [&](const HookedCall&, const std::vector<Value>&, const Value&) {
    ++calls;
    return std::optional<Value>();
  });
  EXPECT_THAT(numbers(run(*module, vector_of({1, 2}), "around")), ElementsAre(2, 6));
  EXPECT_EQ(calls, 0);
  run(*module, vector_of({1, 2}));
  EXPECT_EQ(calls, 1);
}

TEST(ModuleHooks, OfTheBackwardPass) {
  const auto module = make(true);
  const Tensor weight = module->named_parameters().at(0).second;
  const Tensor x = vector_of({1, 2});
  autograd::set_requires_grad(x);
  std::vector<float> in, out;
  auto hook = module->register_full_backward_hook(
      "block", [&](const HookedCall&, const Tensors& inputs, const Tensors& outputs) -> std::optional<Tensors> {
        EXPECT_EQ(outputs.size(), 2u);
        in = numbers(inputs.at(0));
        out = numbers(outputs.at(0));
        return Tensors{ops::call_by_name("aten::mul.Scalar", inputs.at(0), ops::Scalar(10))};
      });
  module->register_full_backward_pre_hook("block.scale", [](const HookedCall&, const Tensors& outputs) {
    return std::optional(Tensors{ops::call_by_name("aten::mul.Scalar", outputs.at(0), ops::Scalar(2))});
  });
  autograd::backward(ops::call_by_name("aten::sum", run(*module, x), ops::Value()));
  EXPECT_THAT(in, ElementsAre(5, 7));  // 2 · weight + 1
  EXPECT_THAT(out, ElementsAre(1, 1));
  EXPECT_THAT(numbers(autograd::grad(x)), ElementsAre(50, 70));
  EXPECT_THAT(numbers(autograd::grad(weight)), ElementsAre(2, 4));
}

TEST(ModuleHooks, RefuseWhatCannotBe) {
  const auto module = make();
  const auto none = [](const HookedCall&, const auto&...) { return std::nullopt; };
  EXPECT_THAT(error_of([&] { module->register_forward_pre_hook("block.other", none); }, ErrorCode::kNotFound),
              HasSubstr("there is no module 'block.other'"));
  EXPECT_THAT(error_of([&] { module->register_forward_pre_hook("block.", none); }, ErrorCode::kNotFound),
              HasSubstr("there is no module 'block.'"));
  EXPECT_THAT(error_of([&] { module->register_forward_pre_hook("block.scale.weight", none); }, ErrorCode::kNotFound),
              HasSubstr("there is no module"));
  EXPECT_THAT(error_of([&] { module->register_full_backward_hook("block", none); }, ErrorCode::kFailedPrecondition),
              HasSubstr("not loaded for training"));
  auto wrong = module->register_forward_pre_hook(
      "block.scale", [](const HookedCall&, const std::vector<Value>& arguments) -> std::optional<std::vector<Value>> {
        return std::vector<Value>{arguments.at(0), Value(std::string("text"))};
      });
  EXPECT_THAT(error_of(
                  [&] {
                    run(*module, vector_of({1, 2}));
                  },
                  ErrorCode::kInvalidArgument),
              HasSubstr("block.scale.forward: argument 'shift'"));
  wrong.remove();
  module->register_forward_hook(
      "block", [](const HookedCall&, const auto&, const Value&) -> std::optional<Value> { return Value(3); });
  EXPECT_THAT(error_of(
                  [&] {
                    run(*module, vector_of({1, 2}));
                  },
                  ErrorCode::kInvalidArgument),
              HasSubstr("block.forward: the forward hook's result"));
}

TEST(ModuleHooks, HandlesOutliveTheModule) {
  auto module = make();
  auto handle = module->register_forward_pre_hook("", [](const HookedCall&, const auto&) { return std::nullopt; });
  module.reset();
  handle.remove();
}

}  // namespace
}  // namespace tensord::jit::module_hooks_test
