// Models on a device whose memory the host cannot access and whose work runs late: training of modules with optimizers,
// scripts as read, optimized and planned, and segments on several devices.
#include <gtest/gtest.h>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/jit/ir/text.h"
#include "core/jit/ir/verify.h"
#include "core/jit/passes/packing.h"
#include "core/jit/passes/passes.h"
#include "core/jit/runtime/interpreter.h"
#include "core/nn/layers/layers.h"
#include "core/nn/optim/clip_grad.h"
#include "core/nn/optim/optimizer.h"
#include "core/ops/generator.h"
#include "core/ops/run.h"
#include "tests/device/async_device.h"
#include "tests/device/async_kernels.h"
#include "tests/support/places.h"
#include "tests/support/ways_to_run.h"

namespace tensord::device_models_test {
namespace {

using late::kFirst;
using ops::call_by_name;
using ops::Value;

[[maybe_unused]] const bool is_installed = (late::install(), late::install_kernels(), true);

Tensor sequence(const Dims& sizes, double step = 0.37) {
  const Tensor out = Tensor::empty(sizes, DType::kFloat64);
  for (int64_t i = 0; i < out.numel(); ++i) {
    const double x = static_cast<double>(i) * step;
    out.data<double>()[i] = x - static_cast<double>(static_cast<int64_t>(x)) - 0.5;
  }
  return out.to(DType::kFloat32);
}

std::vector<float> numbers(const Tensor& tensor) {
  const Tensor host = tensor.to(Device{}).contiguous();
  return {host.data<float>(), host.data<float>() + host.numel()};
}

void expect_near(const Tensor& got, const Tensor& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(got.sizes(), expected.sizes()) << what;
  const std::vector<float> a = numbers(got), b = numbers(expected);
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << what << ", element " << i;
}

// --- training

std::shared_ptr<nn::Module> network() {
  ops::Generator generator(3);
  const ops::GeneratorGuard guard(generator);
  return nn::sequential(std::make_shared<nn::Conv2d>(2, 4, Dims{3, 3}, nn::Conv2dOptions{.padding = {1, 1}}),
                        std::make_shared<nn::BatchNorm2d>(4), std::make_shared<nn::ReLU>(),
                        std::make_shared<nn::MaxPool2d>(Dims{2, 2}), std::make_shared<nn::Flatten>(),
                        std::make_shared<nn::Linear>(16, 8), std::make_shared<nn::GELU>(),
                        std::make_shared<nn::LayerNorm>(Dims{8}), std::make_shared<nn::Linear>(8, 3));
}

// The module after some steps on one device.
std::shared_ptr<nn::Module> trained(const std::string& kind, const nn::Options& options, Device device) {
  const std::shared_ptr<nn::Module> module = network();
  module->to(device);
  std::vector<nn::ParamGroup> groups(1);
  groups[0].params = module->parameters();
  const auto optimizer = nn::make_optimizer(kind, std::move(groups), options);
  const Tensor x = sequence({5, 2, 4, 4}).to(device), y = sequence({5, 3}, 0.61).to(device);
  for (int step = 0; step < 3; ++step) {
    optimizer->zero_grad();
    const Tensor loss = call_by_name("aten::mse_loss", (*module)(x), y);
    EXPECT_EQ(loss.device(), device);
    autograd::backward(loss);
    nn::clip_grad_norm_(module->parameters(), 1.0);
    optimizer->step();
  }
  return module;
}

TEST(DeviceModels, TrainAsOnTheHost) {
  const std::vector<std::pair<std::string, nn::Options>> optimizers{{"SGD", {{"lr", 0.1}, {"momentum", 0.9}}},
                                                                    {"AdamW", {{"lr", 0.01}}},
                                                                    {"Adam", {{"lr", 0.01}, {"amsgrad", true}}},
                                                                    {"RMSprop", {{"lr", 0.01}}},
                                                                    {"Adagrad", {{"lr", 0.1}}}};
  for (const auto& [kind, options] : optimizers) {
    const auto expected = trained(kind, options, {}), got = trained(kind, options, kFirst);
    const nn::StateDict a = got->state_dict(), b = expected->state_dict();
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].tensor.device(), kFirst) << kind << " " << a[i].name;
      expect_near(a[i].tensor.to(DType::kFloat32), b[i].tensor.to(DType::kFloat32), 1e-6, kind + " " + a[i].name);
    }
  }
}

TEST(DeviceModels, MoveTheirTensorsAndKeepTheHandles) {
  const auto module = network();
  const std::vector<Tensor> before = module->parameters();
  module->to(kFirst);
  const std::vector<Tensor> after = module->parameters();
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(before[i].is_same(after[i]));
    EXPECT_EQ(before[i].device(), kFirst);
    EXPECT_TRUE(autograd::requires_grad(before[i]));
  }
  module->to(Device{});
  const auto same = network();
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(numbers(before[i]), numbers(same->parameters()[i]));
}

// --- scripts

Value run(const jit::Module& module, const std::vector<Value>& arguments) {
  jit::Frame frame;
  return module.method("forward").run(frame, arguments);
}

TEST(DeviceModels, RunScriptsInEveryWay) {
  const std::string path = std::string(tests_folder()) + "/jit/data/mlp.pt";
  jit::in_every_way([&](jit::LoadOptions options, const char* how) {
    const auto host = jit::Module::load(path, options);
    options.device = kFirst;
    const auto module = jit::Module::load(path, options);
    for (const auto& [name, tensor] : module->named_tensors()) EXPECT_EQ(tensor.device(), kFirst) << name;
    const int64_t width = host->named_tensors().front().second.sizes().back();
    for (const int64_t rows : {1, 5, 1}) {
      const Tensor x = sequence({rows, width});
      const Tensor expected = run(*host, {x}).to_tensor(), got = run(*module, {x.to(kFirst)}).to_tensor();
      EXPECT_EQ(got.device(), kFirst) << how;
      expect_near(got, expected, 1e-5, how);
    }
    if (options.plan.is_enabled) {
      EXPECT_GT(module->method("forward").plan_stats().programs, 0u);
    }
  });
}

TEST(DeviceModels, RefuseTensorsOfAnotherDevice) {
  jit::LoadOptions options;
  options.device = kFirst;
  const auto module = jit::Module::load(std::string(tests_folder()) + "/jit/data/mlp.pt", options);
  const int64_t width = module->named_tensors().front().second.sizes().back();
  try {
    run(*module, {sequence({2, width})});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("Expected all tensors to be on the same device"), std::string::npos)
        << error.what();
  }
}

// --- plans

// The graph after planning, its plans and the result of each run.
struct Planned {
  std::unique_ptr<jit::Graph> graph;
  int plans = 0;
};

Planned planned(const std::string& text, const std::vector<Tensor>& inputs) {
  Planned out{jit::parse_graph(text), 0};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& t = inputs[i];
    out.graph->inputs()[i]->set_known(Tensor::meta_strided(t.sizes(), t.strides(), t.dtype(), t.device()));
  }
  jit::PassContext context;
  for (auto* pass : {jit::propagate_constants, jit::propagate_shapes, jit::fuse_pointwise, jit::plan_segments}) {
    pass(*out.graph, context);
    jit::verify(*out.graph);
  }
  jit::for_each_node(out.graph->block(), [&](jit::Node* node) { out.plans += node->kind() == jit::NodeKind::kPlan; });
  return out;
}

Tensor run(const jit::Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<Value> arguments(inputs.begin(), inputs.end());
  jit::Frame frame;
  const auto program = jit::Program::compile(graph, "test");
  return jit::Interpreter(frame, nullptr).run(*program, arguments).to_tensor();
}

const char* const kSteps = R"(graph(%a : Tensor, %b : Tensor):
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %c : Tensor = aten::matmul(%a, %b)
  %d : Tensor = aten::add.Tensor(%c, %a, %one)
  %e : Tensor = aten::relu(%d)
  %f : Tensor = aten::transpose.int(%e, %zero, %one)
  %g : Tensor = aten::matmul(%f, %b)
  return (%g))";

TEST(DevicePlans, RunOnTheDeviceOfTheirTensors) {
  const Tensor a = sequence({4, 4}), b = sequence({4, 4}, 0.21);
  const std::vector<Tensor> there{a.to(kFirst), b.to(kFirst)};
  const Planned plan = planned(kSteps, there);
  EXPECT_EQ(plan.plans, 1) << jit::print_graph(*plan.graph);
  synchronize(kFirst);
  const Tensor expected = run(*jit::parse_graph(kSteps), {a, b});
  const Tensor got = run(*plan.graph, there);
  EXPECT_GT(late::waiting(), 0u);
  EXPECT_EQ(got.device(), kFirst);
  expect_near(got, expected, 1e-6, "planned");
}

const char* const kCrossing = R"(graph(%a : Tensor, %h : Tensor):
  %one : int = prim::Constant[value=1]()
  %b : Tensor = aten::mul.Tensor(%a, %a)
  %c : Tensor = aten::relu(%b)
  %d : Tensor = aten::mul.Tensor(%h, %h)
  %e : Tensor = aten::relu(%d)
  %f : Tensor = aten::cpu(%c)
  %g : Tensor = aten::add.Tensor(%f, %e, %one)
  %i : Tensor = aten::relu(%g)
  return (%i))";

// A tensor on another device ends a segment; a plan never covers both devices.
TEST(DevicePlans, AreOfOneDeviceEach) {
  const Tensor a = sequence({4, 4}), h = sequence({4, 4}, 0.21), there = a.to(kFirst);
  const Planned plan = planned(kCrossing, {there, h});
  EXPECT_GE(plan.plans, 2) << jit::print_graph(*plan.graph);
  jit::for_each_node(plan.graph->block(), [&](jit::Node* node) {
    if (node->kind() != jit::NodeKind::kPlan) return;
    std::vector<Device> devices;
    for (const jit::Node* inner = node->blocks()[0]->first(); inner; inner = inner->next()) {
      for (const auto* output : inner->outputs()) {
        if (output->known().is_tensor()) devices.push_back(output->known().to_tensor().device());
      }
    }
    for (const Device device : devices) EXPECT_EQ(device, devices.front());
  });
  expect_near(run(*plan.graph, {there, h}), run(*jit::parse_graph(kCrossing), {a, h}), 1e-6, "crossing");
}

}  // namespace
}  // namespace tensord::device_models_test
