// Layers compared with PyTorch's: initial values for a seed, results, gradients; modules and their hooks.
#include "core/nn/layers/layers.h"

#include <gmock/gmock.h>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/nn/optim/optimizer.h"
#include "core/ops/generator.h"
#include "core/ops/run.h"
#include "tests/nn/nn_cases.h"

namespace tensord::nn::layers_test {
namespace {

using autograd::set_requires_grad;
using ops::call_by_name;
using ops::Value;

std::shared_ptr<Module> make(const std::string& name) {
  const TransformerEncoderLayerOptions encoder{.dim_feedforward = 20, .dropout = 0};
  if (name == "Linear") return std::make_shared<Linear>(7, 5);
  if (name == "LinearNoBias") return std::make_shared<Linear>(7, 5, false);
  if (name == "Conv2d")
    return std::make_shared<Conv2d>(4, 6, Dims{3, 2}, Conv2dOptions{.stride = {2, 2}, .padding = {1, 1}, .groups = 2});
  if (name == "BatchNorm2d") return std::make_shared<BatchNorm2d>(4);
  if (name == "LayerNorm") return std::make_shared<LayerNorm>(Dims{4, 6});
  if (name == "Embedding") return std::make_shared<Embedding>(10, 4, 2);
  if (name == "GELU") return std::make_shared<GELU>();
  if (name == "MaxPool2d") return std::make_shared<MaxPool2d>(Dims{3, 3}, Dims{2, 2}, Dims{1, 1});
  if (name == "Flatten") return std::make_shared<Flatten>();
  if (name == "Sequential") {
    const auto first = std::make_shared<Linear>(6, 8);
    return sequential(first, std::make_shared<ReLU>(),
                      sequential(std::make_shared<Dropout>(0.0), std::make_shared<Linear>(8, 2)));
  }
  if (name == "Encoder") return std::make_shared<TransformerEncoderLayer>(12, 3, encoder);
  auto first = encoder;
  first.batch_first = first.norm_first = first.is_gelu = true;
  check(name == "EncoderFirst", "no layer ", name);
  return std::make_shared<TransformerEncoderLayer>(12, 3, first);
}

std::vector<std::string> names_of(const StateDict& state) {
  std::vector<std::string> names;
  for (const NamedTensor& each : state) names.push_back(each.name);
  return names;
}

TEST(Layers, EqualPyTorch) {
  const Value cases = load_cases("layers");
  EXPECT_EQ(get_items(cases, "cases").size(), 12u);
  for (const Value& saved : get_items(cases, "cases")) {
    const std::string name = item(saved, "name").to_string();
    SCOPED_TRACE(name);
    ops::Generator generator(21);
    const ops::GeneratorGuard guard(generator);
    const auto module = make(name);
    std::vector<std::string> expected_names;
    for (const Value& each : items(saved, "names")) expected_names.push_back(each.to_string());
    const StateDict state = module->state_dict();
    EXPECT_EQ(names_of(state), expected_names);
    for (const NamedTensor& each : state)
      EXPECT_LT(difference(each.tensor, item(item(saved, "state"), each.name.c_str()).to_tensor()), 1e-6) << each.name;

    const Tensor x = item(saved, "x").to_tensor().clone();
    const bool has_gradient = is_floating(x.dtype());
    if (has_gradient) set_requires_grad(x);
    const Tensor y = (*module)(x);
    EXPECT_LT(difference(y, item(saved, "y").to_tensor()), 2e-6);
    autograd::backward(y, item(saved, "direction").to_tensor());
    if (has_gradient) {
      EXPECT_LT(difference(autograd::grad(x), item(saved, "x_grad").to_tensor()), 5e-6);
    }
    for (const NamedTensor& each : module->named_parameters()) {
      const Tensor expected = item(item(saved, "grads"), each.name.c_str()).to_tensor();
      EXPECT_LT(difference(autograd::grad(each.tensor), expected), 5e-6) << each.name;
    }
    for (const NamedTensor& each : module->named_buffers())
      EXPECT_LT(difference(each.tensor, item(item(saved, "after"), each.name.c_str()).to_tensor()), 1e-6) << each.name;
  }
}

TEST(Layers, AttentionMasksHideKeys) {
  ops::Generator generator(2);
  const ops::GeneratorGuard guard(generator);
  TransformerEncoderLayer layer(8, 2, {.dim_feedforward = 16, .dropout = 0.5, .batch_first = true});
  layer.eval();
  const Tensor x = call_by_name("aten::randn", Dims{2, 5, 8});
  const Tensor padding = call_by_name("aten::zeros", Dims{2, 5}, Value(DType::kBool));
  for (int64_t b = 0; b < 2; ++b) padding.data<bool>()[b * 5 + 4] = true;
  const Tensor causal = call_by_name("aten::triu", call_by_name("aten::ones", Dims{5, 5}, Value(DType::kBool)), 1);
  const Tensor none;
  const auto first = [&](const Tensor& t, int64_t count) { return call_by_name("aten::narrow", t, 1, 0, count); };
  const Tensor whole = layer(x, none, padding), part = layer(first(x, 4));
  EXPECT_LT(difference(first(whole, 4), part), 1e-6);
  const Tensor steps = layer(x, causal), one = layer(first(x, 1));
  EXPECT_LT(difference(first(steps, 1), one), 1e-6);
  EXPECT_GT(difference(first(layer(x), 1), one), 1e-3);
  layer.train();
  EXPECT_GT(difference(layer(x), layer(x)), 1e-3);
}

// Parameters, a persistent and a non-persistent buffer, and one layer in two places.
struct Net final : Layer {
  Net() : Layer("Net") {
    scale = register_parameter("scale", Tensor::scalar(2.0f));
    register_parameter("nothing", Tensor());
    count = register_buffer("count", Tensor::scalar<int64_t>(0));
    scratch = register_buffer("scratch", Tensor::scalar(0.0f), false);
    body = register_module("body", sequential(std::make_shared<Linear>(2, 2), std::make_shared<ReLU>()));
    again = register_module("again", std::dynamic_pointer_cast<Module>(body->children()[0].second));
  }
  using Layer::forward;
  Tensor forward(const Tensor& x) override { return call_by_name("aten::mul.Tensor", (*body)(x), scale); }
  Tensor scale, count, scratch;
  std::shared_ptr<Sequential> body;
  std::shared_ptr<Module> again;
};

TEST(Module, NamesAndModes) {
  Net net;
  std::vector<std::string> names;
  for (const NamedTensor& each : net.named_parameters()) names.push_back(each.name);
  EXPECT_EQ(names, (std::vector<std::string>{"scale", "body.0.weight", "body.0.bias"}));
  EXPECT_EQ(names_of(net.state_dict()),
            (std::vector<std::string>{"scale", "count", "body.0.weight", "body.0.bias", "again.weight", "again.bias"}));
  names.clear();
  for (const auto& [name, module] : net.named_modules()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"", "body", "body.0", "body.1"}));
  EXPECT_EQ(net.named_buffers().size(), 2u);
  EXPECT_EQ(net.named_parameters(false).size(), 1u);
  EXPECT_EQ(net.submodule("body.1").kind(), "ReLU");
  EXPECT_THROW(net.submodule("body.2"), Error);
  net.eval();
  EXPECT_FALSE(net.submodule("body.1").is_training());
  net.train();
  EXPECT_TRUE(net.submodule("body.1").is_training());
  std::vector<std::string> kinds;
  net.apply([&](Module& module) { kinds.push_back(module.kind()); });
  EXPECT_EQ(kinds, (std::vector<std::string>{"Linear", "ReLU", "Sequential", "Linear", "Net"}));
  net.requires_grad_(false);
  EXPECT_FALSE(autograd::requires_grad(net.scale));
  net.requires_grad_();
  autograd::backward(call_by_name("aten::sum", net(call_by_name("aten::ones", Dims{1, 2})), Value()));
  EXPECT_TRUE(autograd::grad(net.scale).defined());
  net.zero_grad();
  EXPECT_FALSE(autograd::grad(net.scale).defined());
  net.to(DType::kFloat64);
  EXPECT_EQ(net.scale.dtype(), DType::kFloat64);
  EXPECT_EQ(net.count.dtype(), DType::kInt64);
  const Tensor y = net(call_by_name("aten::ones", Dims{1, 2}, Value(DType::kFloat64)));
  autograd::backward(call_by_name("aten::sum", y, Value()));
  EXPECT_EQ(autograd::grad(net.scale).dtype(), DType::kFloat64);
}

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Module, StateDict) {
  Net net, other;
  StateDict state = net.state_dict();
  other.load_state_dict(state);
  EXPECT_EQ(difference(other.state_dict()[2].tensor, state[2].tensor), 0);
  EXPECT_TRUE(autograd::is_leaf(other.state_dict()[2].tensor));
  EXPECT_TRUE(autograd::requires_grad(other.state_dict()[2].tensor));
  state.erase(state.begin());
  state.push_back({"extra", Tensor::scalar(1.0)});
  const double before = other.scale.item_double();
  EXPECT_EQ(error_of([&] { other.load_state_dict(state); }),
            "Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: \"scale\". "
            "\n\tUnexpected key(s) in state_dict: \"extra\". ");
  const auto difference = other.load_state_dict(state, false);
  EXPECT_EQ(difference.missing, std::vector<std::string>{"scale"});
  EXPECT_EQ(difference.unexpected, std::vector<std::string>{"extra"});
  state[0].tensor = call_by_name("aten::zeros", Dims{3});
  EXPECT_EQ(error_of([&] { other.load_state_dict(state, false); }),
            "Error(s) in loading state_dict for Net:\n\tsize mismatch for count: copying a param with shape [3] from "
            "checkpoint, the shape in current model is [].");
  EXPECT_EQ(other.scale.item_double(), before);
  EXPECT_EQ(error_of([&] { Sequential().push_back(nullptr); }), "Sequential: module \"0\" is null");
}

TEST(Hooks, OrderIsPyTorchs) {
  Net net;
  std::vector<std::string> calls;
  const auto forward = [&](const char* name) {
    return [&calls, name](Module&, const Tensors&, const Tensors&) -> std::optional<Tensors> {
      calls.push_back(name);
      return {};
    };
  };
  const auto pre = [&](const char* name) {
    return [&calls, name](Module&, const Tensors&) -> std::optional<Tensors> {
      calls.push_back(name);
      return {};
    };
  };
  Module& inner = net.submodule("body.0");
  inner.register_full_backward_hook(forward("backward"));
  inner.register_full_backward_pre_hook(pre("before backward"));
  auto removed = inner.register_forward_hook(forward("removed"));
  inner.register_forward_hook(forward("forward"));
  inner.register_forward_pre_hook(pre("pre"));
  removed.remove();
  auto global = register_global_forward_pre_hook([&](Module& module, const Tensors&) -> std::optional<Tensors> {
    if (&module == &inner) calls.push_back("global pre");
    return {};
  });
  auto global_forward =
      register_global_forward_hook([&](Module& module, const Tensors&, const Tensors&) -> std::optional<Tensors> {
        if (&module == &inner) calls.push_back("global forward");
        return {};
      });
  auto global_backward =
      register_global_full_backward_hook([&](Module& module, const Tensors&, const Tensors&) -> std::optional<Tensors> {
        if (&module == &inner) calls.push_back("global backward");
        return {};
      });
  const Tensor x = call_by_name("aten::ones", Dims{1, 2});
  set_requires_grad(x);
  const Tensor y = net(x);
  EXPECT_EQ(calls, (std::vector<std::string>{"global pre", "pre", "global forward", "forward"}));
  calls.clear();
  autograd::backward(call_by_name("aten::sum", y, Value()));
  EXPECT_EQ(calls, (std::vector<std::string>{"before backward", "global backward", "backward"}));
  global.remove();
  global_forward.remove();
  global_backward.remove();
  calls.clear();
  net(x);
  EXPECT_EQ(calls, (std::vector<std::string>{"pre", "forward"}));
}

TEST(Hooks, ChangeValuesAndGradients) {
  const auto times = [](const Tensors& tensors, double factor) {
    Tensors out;
    for (const Tensor& t : tensors) out.push_back(t.defined() ? call_by_name("aten::mul.Scalar", t, factor) : t);
    return out;
  };
  ReLU module;
  module.register_forward_pre_hook([&](Module&, const Tensors& inputs) { return std::optional(times(inputs, 3)); });
  module.register_forward_hook(
      [&](Module&, const Tensors&, const Tensors& outputs) { return std::optional(times(outputs, 5)); });
  const Tensor x = call_by_name("aten::ones", Dims{2});
  set_requires_grad(x);
  EXPECT_EQ(call_by_name("aten::sum", module(x), Value()).item_double(), 30);
  Tensors seen_inputs, seen_outputs;
  module.register_full_backward_hook([&](Module&, const Tensors& grad_inputs, const Tensors& grad_outputs) {
    seen_inputs = grad_inputs;
    seen_outputs = grad_outputs;
    return std::optional(times(grad_inputs, 10));
  });
  module.register_full_backward_pre_hook(
      [&](Module&, const Tensors& grad_outputs) { return std::optional(times(grad_outputs, 2)); });
  autograd::backward(call_by_name("aten::sum", module(x), Value()));
  EXPECT_EQ(seen_outputs.at(0).contiguous().data<float>()[0], 2);
  EXPECT_EQ(seen_inputs.at(0).contiguous().data<float>()[0], 10);   // 2 · 5
  EXPECT_EQ(autograd::grad(x).contiguous().data<float>()[0], 300);  // … · 10 · 3
  // Backward hooks do not run if nothing requires a gradient; if only the inputs do not, the hooks still see the
  // results' gradients.
  seen_inputs.clear();
  Linear linear(2, 1);
  linear.register_full_backward_hook(
      [&](Module&, const Tensors& grad_inputs, const Tensors& grad_outputs) -> std::optional<Tensors> {
        seen_inputs = grad_inputs;
        EXPECT_EQ(grad_outputs.size(), 1u);
        return {};
      });
  autograd::backward(call_by_name("aten::sum", linear(autograd::detach(x)), Value()));
  ASSERT_EQ(seen_inputs.size(), 1u);
  EXPECT_FALSE(seen_inputs[0].defined());
  EXPECT_TRUE(autograd::grad(linear.weight).defined());
}

TEST(Module, Trains) {
  ops::Generator generator(4);
  const ops::GeneratorGuard guard(generator);
  const auto model =
      sequential(std::make_shared<Linear>(2, 16), std::make_shared<GELU>(), std::make_shared<Linear>(16, 1));
  AdamW optimizer(model->parameters(), {.lr = 0.02});
  const Tensor x = call_by_name("aten::randn", Dims{64, 2});
  const Tensor target = call_by_name("aten::prod.dim_int", x, 1, true);
  double first = 0, last = 0;
  for (int step = 0; step < 150; ++step) {
    const Tensor error = call_by_name("aten::sub.Tensor", (*model)(x), target, 1);
    const Tensor loss = call_by_name("aten::mean", call_by_name("aten::mul.Tensor", error, error), Value());
    optimizer.zero_grad();
    autograd::backward(loss);
    optimizer.step();
    (step == 0 ? first : last) = loss.item_double();
  }
  EXPECT_LT(last, first / 20);
}

}  // namespace
}  // namespace tensord::nn::layers_test
