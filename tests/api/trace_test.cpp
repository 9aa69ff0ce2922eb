// Traces of modules written in C++, compared with the module on inputs that it was not traced with, here and in
// PyTorch.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tensord/tensord.h"
#include "tests/support/places.h"

namespace tensord::trace_test {
namespace {

using ::testing::HasSubstr;

struct Net final : nn::Layer {
  Net() : Layer("Net") {
    conv = register_module("conv", std::make_shared<nn::Conv1d>(2, 4, Dims{3}, nn::ConvOptions{.padding = {1}}));
    norm = register_module("norm", std::make_shared<nn::BatchNorm1d>(4));
    lstm = register_module("lstm", std::make_shared<nn::LSTM>(4, 3, nn::RNNOptions{.batch_first = true}));
    head = register_module("head", nn::sequential(std::make_shared<nn::Linear>(3, 5), std::make_shared<nn::GELU>()));
  }
  using Layer::forward;
  Tensor forward(const Tensor& x) override {
    const Tensor y = relu((*norm)((*conv)(x)));
    return (*head)(lstm->run({transpose(y, 1, 2)}).front()) * 2 + 1;
  }
  std::shared_ptr<nn::Conv1d> conv;
  std::shared_ptr<nn::BatchNorm1d> norm;
  std::shared_ptr<nn::LSTM> lstm;
  std::shared_ptr<nn::Sequential> head;
};

class TraceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    manual_seed(5);
    path = (std::filesystem::temp_directory_path() / ("tensord_trace_" + std::to_string(getpid()) + ".pt")).string();
  }
  void TearDown() override {
    for (const char* end : {"", ".cases"}) std::filesystem::remove(path + end);
  }
  Tensor run(const Tensor& x) {
    const auto module = jit::Module::load(path);
    const auto frame = jit::make_frame();
    const ops::Value arguments[] = {x};
    return module->method("forward").run(*frame, arguments).to_tensor();
  }
  template <class F>
  static std::string error_of(F function) {
    try {
      function();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  std::string path;
};

TEST_F(TraceTest, ModulesAreArchivesForPyTorch) {
  Net net;
  net(randn({8, 2, 6}));  // sets running statistics
  net.eval();
  jit::save_trace(path, net, {randn({3, 2, 6})}, {.input_names = {"x"}});
  const Tensor x = randn({3, 2, 6});
  EXPECT_TRUE(allclose(run(x), net(x), 1e-5, 1e-5));
  EXPECT_THAT(error_of([&] { run(randn({4, 2, 6})); }), HasSubstr("input 'x' must have the shape [3, 2, 6]"));

  const auto loaded = jit::Module::load(path);
  std::vector<std::string> names, wanted;
  for (const auto& [name, tensor] : loaded->named_parameters()) names.push_back(name);
  for (const auto& each : net.named_parameters()) wanted.push_back(each.name);
  EXPECT_THAT(names, ::testing::UnorderedElementsAreArray(wanted));

  jit::save_torch_file(path + ".cases", ops::make_tuple({x, autograd::detach(net(x))}));
  const std::string program =
      "import sys, torch; x, y = torch.load(sys.argv[2]); m = torch.jit.load(sys.argv[1]); "
      "torch.testing.assert_close(m(x), y, rtol=1e-4, atol=1e-5); assert len(list(m.parameters())) == 10";
  EXPECT_EQ(
      std::system((std::string(tests_python()) + " -c '" + program + "' '" + path + "' '" + path + ".cases'").c_str()),
      0);
}

TEST_F(TraceTest, TrainingModeLeavesTheBuffersAlone) {
  nn::BatchNorm1d norm(3);
  jit::save_trace(path, norm, {randn({4, 3})});
  EXPECT_EQ(norm.num_batches_tracked.item_int(), 0);
  EXPECT_TRUE(equal(norm.running_mean, zeros({3})));
  EXPECT_EQ(jit::Module::load(path)->named_buffers().size(), 3u);
}

TEST_F(TraceTest, AnySizes) {
  const auto twice = [](const nn::Tensors& x) { return nn::Tensors{x[0] * 2}; };
  jit::save_trace(path, twice, {randn({2, 3})}, {.any_sizes = true, .check_inputs = {{randn({5, 1})}}});
  EXPECT_TRUE(equal(run(ones({7, 2})), full({7, 2}, 2.0)));
  EXPECT_THAT(error_of([&] { run(ones({7})); }), HasSubstr("must have 2 dimensions"));
  EXPECT_THAT(error_of([&] { run(ones({7, 2}, {.dtype = DType::kFloat64})); }), HasSubstr("must be of float32"));
  const auto mean = [](const nn::Tensors& x) { return nn::Tensors{sum(x[0]) / x[0].numel()}; };
  EXPECT_THAT(error_of([&] {
                jit::save_trace(path, mean, {ones({2, 3})}, {.any_sizes = true, .check_inputs = {{ones({5, 1})}}});
              }),
              HasSubstr("differs from the function's"));
}

TEST_F(TraceTest, WhatCannotBeTracedIsRefused) {
  const Tensor outside = zeros({2});
  EXPECT_THAT(error_of([&] {
                jit::save_trace(path, [&](const nn::Tensors& x) { return nn::Tensors{add_(outside, x[0])}; },
                                {ones({2})});
              }),
              HasSubstr("made outside of it"));
  EXPECT_THAT(error_of([&] {
                jit::save_trace(path,
                                [&](const nn::Tensors& x) { return nn::Tensors{equal(x[0], x[0]) ? x[0] : -x[0]}; },
                                {ones({2})});
              }),
              HasSubstr("gave elements as numbers"));
  EXPECT_THAT(
      error_of([&] { jit::save_trace(path, [](const nn::Tensors&) { return nn::Tensors{rand({2})}; }, {ones({2})}); }),
      HasSubstr("differs"));
}

}  // namespace
}  // namespace tensord::trace_test
