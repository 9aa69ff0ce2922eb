// Models of images on CUDA's devices, eagerly: a residual network and a U-Net, forward, backward and steps of
// optimizers as on the host. With TENSORD_CUDA naming the emulated devices' library.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/autograd/engine.h"
#include "core/nn/layers/conv.h"
#include "core/nn/layers/layers.h"
#include "core/nn/layers/norms.h"
#include "core/nn/optim/clip_grad.h"
#include "core/nn/optim/optimizer.h"
#include "core/ops/generator.h"
#include "core/ops/run.h"
#include "core/tensor/cuda/runtime.h"

namespace tensord::cuda_models_test {
namespace {

using ops::call_by_name;
using ops::Value;

constexpr Device kGpu{kCUDA, 0};

class CudaModels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda::device_count() > 0) return;
    const char* const named = std::getenv("TENSORD_CUDA");
    if (named && *named) FAIL() << cuda::why_no_devices();
    GTEST_SKIP() << cuda::why_no_devices();
  }
};

Tensor image_numbers(const Dims& sizes, double step) {
  const Tensor out = Tensor::empty(sizes, DType::kFloat64);
  for (int64_t i = 0; i < out.numel(); ++i) out.data<double>()[i] = std::sin(static_cast<double>(i) * step);
  return out;
}
Tensor labels(const Dims& sizes, int64_t classes) {
  const Tensor out = Tensor::empty(sizes, DType::kInt64);
  for (int64_t i = 0; i < out.numel(); ++i) out.data<int64_t>()[i] = i * 7 % classes;
  return out;
}

Tensor relu(const Tensor& x) { return call_by_name("aten::relu", x); }
std::shared_ptr<nn::Conv2d> conv(int64_t in, int64_t out, int64_t kernel, nn::Conv2dOptions options = {}) {
  return std::make_shared<nn::Conv2d>(in, out, Dims{kernel, kernel}, options);
}

// A stem, a residual block of a grouped and a strided convolution, and a head.
class Residual final : public nn::Module {
 public:
  Residual()
      : Module("Residual"),
        stem_(register_module("stem", conv(3, 8, 5, {.stride = 2, .padding = 2, .has_bias = false}))),
        first_(register_module("first", conv(8, 16, 3, {.stride = 2, .padding = 1, .groups = 4}))),
        second_(register_module("second", conv(16, 16, 3, {.padding = 2, .dilation = 2, .groups = 16}))),
        shortcut_(register_module("shortcut", conv(8, 16, 1, {.stride = 2}))),
        of_stem_(register_module("of_stem", std::make_shared<nn::BatchNorm2d>(8))),
        of_first_(register_module("of_first", std::make_shared<nn::BatchNorm2d>(16))),
        of_second_(register_module("of_second", std::make_shared<nn::GroupNorm>(4, 16))),
        head_(register_module("head", std::make_shared<nn::Linear>(16, 5))) {}
  nn::Tensors forward(const nn::Tensors& inputs) override {
    const Value two = ops::make_int_list(Dims{2, 2}), one = ops::make_int_list(Dims{1, 1});
    Tensor x = relu((*of_stem_)((*stem_)(inputs[0])));
    x = call_by_name("aten::max_pool2d", x, ops::make_int_list(Dims{3, 3}), two, one, one, false);
    const Tensor inner = (*of_second_)((*second_)(relu((*of_first_)((*first_)(x)))));
    x = relu(call_by_name("aten::add.Tensor", inner, (*shortcut_)(x)));
    x = call_by_name("aten::adaptive_avg_pool2d", x, one);
    return {(*head_)(call_by_name("aten::flatten.using_ints", x, 1, -1))};
  }

 private:
  const std::shared_ptr<nn::Conv2d> stem_, first_, second_, shortcut_;
  const std::shared_ptr<nn::BatchNorm2d> of_stem_, of_first_;
  const std::shared_ptr<nn::GroupNorm> of_second_;
  const std::shared_ptr<nn::Linear> head_;
};

// One level down and up: by a transposed convolution, beside a bilinear resampling.
class UNet final : public nn::Module {
 public:
  UNet()
      : Module("UNet"),
        down_(register_module("down", conv(2, 8, 3, {.padding = 1}))),
        deep_(register_module("deep", conv(8, 16, 3, {.padding = 1}))),
        out_(register_module("out", conv(32, 4, 3, {.padding = 1}))),
        norm_(register_module("norm", std::make_shared<nn::BatchNorm2d>(16))),
        up_(register_module("up",
                            std::make_shared<nn::ConvTranspose2d>(16, 8, Dims{2, 2}, nn::ConvOptions{.stride = 2}))) {}
  nn::Tensors forward(const nn::Tensors& inputs) override {
    const Value two = ops::make_int_list(Dims{2, 2}), none = ops::make_int_list(Dims{0, 0});
    const Tensor high = relu((*down_)(inputs[0]));
    const Tensor pooled = call_by_name("aten::avg_pool2d", high, two, two, none, false, true, Value());
    const Tensor low = relu((*norm_)((*deep_)(pooled)));
    const Tensor resampled =
        call_by_name("aten::upsample_bilinear2d", low, ops::make_int_list(Dims{high.size(2), high.size(3)}), false,
                     Value(), Value());
    const Value all = ops::make_list(ops::tensor_type(), {high, (*up_)(low), resampled});
    return {(*out_)(call_by_name("aten::cat", all, 1))};
  }

 private:
  const std::shared_ptr<nn::Conv2d> down_, deep_, out_;
  const std::shared_ptr<nn::BatchNorm2d> norm_;
  const std::shared_ptr<nn::ConvTranspose2d> up_;
};

struct Trained {
  std::vector<double> losses;
  nn::StateDict state;
};

// Some steps on one device, in the dtype of x.
template <class Model>
Trained trained(const std::string& kind, const nn::Options& options, const Tensor& x, const Tensor& y, bool is_last,
                Device device) {
  ops::Generator generator(5);
  const ops::GeneratorGuard guard(generator);
  Model model;
  model.to(x.dtype());
  model.to(device);
  std::vector<nn::ParamGroup> groups(1);
  groups[0].params = model.parameters();
  const auto optimizer = nn::make_optimizer(kind, std::move(groups), options);
  Tensor input = x.to(device);
  if (is_last) {
    const Tensor last = Tensor::empty_strided(x.sizes(), channels_last_strides(x.sizes()), x.dtype(), device);
    last.copy_from(input);
    input = last;
  }
  const Tensor target = y.to(device);
  Trained out;
  for (int step = 0; step < 2; ++step) {
    optimizer->zero_grad();
    const Tensor loss =
        call_by_name("aten::cross_entropy_loss", model.forward({input})[0], target, Value(), 1, -100, 0.1);
    EXPECT_EQ(loss.device(), device);
    out.losses.push_back(loss.item_double());
    autograd::backward(loss);
    nn::clip_grad_norm_(model.parameters(), 1.0);
    optimizer->step();
  }
  out.state = model.state_dict();
  return out;
}

template <class Model>
void expect_as_on_host(const std::string& kind, const nn::Options& options, const Tensor& x, const Tensor& y,
                       bool is_last) {
  // In float32 a pixel may lie on the other side of zero, or of its neighbor, after the first step.
  const double most = x.dtype() == DType::kFloat64 ? 1e-11 : 2e-4;
  const Trained expected = trained<Model>(kind, options, x, y, is_last, {}),
                got = trained<Model>(kind, options, x, y, is_last, kGpu);
  for (size_t i = 0; i < expected.losses.size(); ++i) EXPECT_NEAR(got.losses[i], expected.losses[i], most);
  ASSERT_EQ(got.state.size(), expected.state.size());
  for (size_t i = 0; i < got.state.size(); ++i) {
    EXPECT_EQ(got.state[i].tensor.device(), kGpu) << got.state[i].name;
    const auto here = [](const Tensor& t) { return t.to(Device{}).to(DType::kFloat64).contiguous(); };
    const Tensor a = here(got.state[i].tensor), b = here(expected.state[i].tensor);
    for (int64_t k = 0; k < a.numel(); ++k)
      ASSERT_NEAR(a.data<double>()[k], b.data<double>()[k], most) << got.state[i].name << ", " << k;
  }
}

TEST_F(CudaModels, ResidualNetworksTrainAsOnTheHost) {
  const Tensor x = image_numbers({4, 3, 20, 20}, 0.37), y = labels({4}, 5);
  for (const bool is_last : {false, true})
    expect_as_on_host<Residual>("SGD", {{"lr", 0.05}, {"momentum", 0.9}, {"weight_decay", 1e-3}}, x, y, is_last);
  expect_as_on_host<Residual>("RMSprop", {{"lr", 1e-3}, {"momentum", 0.5}, {"centered", true}}, x, y, false);
  expect_as_on_host<Residual>("SGD", {{"lr", 0.05}, {"nesterov", true}, {"momentum", 0.5}}, x.to(DType::kFloat32), y,
                              false);
}

// Its convolutions have enough pixels for sums over weights in parts.
TEST_F(CudaModels, UNetsTrainAsOnTheHost) {
  const Tensor x = image_numbers({2, 2, 24, 24}, 0.23), y = labels({2, 24, 24}, 4);
  expect_as_on_host<UNet>("AdamW", {{"lr", 1e-3}, {"eps", 1e-4}}, x, y, false);
  expect_as_on_host<UNet>("Adagrad", {{"lr", 1e-2}, {"eps", 1e-4}}, x, y, true);
  expect_as_on_host<UNet>("AdamW", {{"lr", 1e-3}, {"eps", 1e-4}}, x.to(DType::kFloat32), y, false);
}

}  // namespace
}  // namespace tensord::cuda_models_test
