// Every layer and loss that is not in layers_test compared with PyTorch's: names and initial values, results,
// gradients.
#include <functional>
#include <map>

#include "core/nn/layers/conv.h"
#include "core/nn/layers/layers.h"
#include "core/nn/layers/losses.h"
#include "core/nn/layers/norms.h"
#include "core/nn/layers/operator_layers.h"
#include "core/nn/layers/rnn.h"
#include "tests/nn/compare_module.h"

namespace tensord::nn::more_layers_test {
namespace {

using ops::Value;
using Made = std::shared_ptr<Module>;

template <class M, class... A>
std::function<Made()> of(A... arguments) {
  return [=] { return std::make_shared<M>(arguments...); };
}

Tensor weight() {
  const Tensor out = Tensor::empty(Dims{4}, DType::kFloat32);
  for (int i = 0; i < 4; ++i) out.data<float>()[i] = std::vector<float>{1, 2, 0.5, 1.5}[static_cast<size_t>(i)];
  return out;
}

std::map<std::string, std::function<Made()>> activations() {
  return {
      {"Tanh", of<Tanh>()},
      {"Sigmoid", of<Sigmoid>()},
      {"ReLU6", of<ReLU6>()},
      {"SiLU", of<SiLU>()},
      {"Mish", of<Mish>()},
      {"SELU", of<SELU>()},
      {"Hardswish", of<Hardswish>()},
      {"Hardsigmoid", of<Hardsigmoid>()},
      {"LogSigmoid", of<LogSigmoid>()},
      {"ELU", of<ELU>()},
      {"CELU", of<CELU>()},
      {"LeakyReLU", of<LeakyReLU>()},
      {"Hardtanh", of<Hardtanh>()},
      {"Hardshrink", of<Hardshrink>()},
      {"Softshrink", of<Softshrink>()},
      {"Softplus", of<Softplus>()},
      {"PReLU", of<PReLU>()},
      {"Identity", of<Identity>()},
      {"Threshold", of<Threshold>(0.1, -2.0)},
      {"GLU", of<GLU>(1)},
      {"Softmax", of<Softmax>(1)},
      {"LogSoftmax", of<LogSoftmax>(1)},
      {"Unflatten", of<Unflatten>(1, Dims{2, 3})},
      {"PixelShuffle", of<PixelShuffle>(2)},
      {"PixelUnshuffle", of<PixelUnshuffle>(2)},
  };
}

std::map<std::string, std::function<Made()>> spatial() {
  return {
      {"MaxPool1d", of<MaxPool1d>(Dims{3}, Dims{2}, Dims{1})},
      {"MaxPool3d", of<MaxPool3d>(Dims{2})},
      {"AvgPool1d", of<AvgPool1d>(Dims{3}, Dims{2}, Dims{1})},
      {"AvgPool2d", of<AvgPool2d>(Dims{3, 2}, Dims{2}, Dims{1, 0}, true, false)},
      {"AvgPool3d", of<AvgPool3d>(Dims{2})},
      {"AdaptiveAvgPool1d", of<AdaptiveAvgPool1d>(Dims{3})},
      {"AdaptiveAvgPool2d", of<AdaptiveAvgPool2d>(Dims{2, 3})},
      {"AdaptiveMaxPool2d", of<AdaptiveMaxPool2d>(Dims{2})},
      {"ZeroPad2d", of<ZeroPad2d>(Dims{1, 2, 0, 3})},
      {"ConstantPad", of<ConstantPad>(Dims{1, 2}, 3.5)},
      {"ReflectionPad", of<ReflectionPad>(Dims{1, 2, 0, 1})},
      {"ReplicationPad", of<ReplicationPad>(Dims{1, 2})},
      {"CircularPad", of<CircularPad>(Dims{1, 2})},
      {"Conv1d", of<Conv1d>(4, 6, Dims{3}, ConvOptions{.stride = {2}, .padding = {1}, .dilation = {2}, .groups = 2})},
      {"Conv3d", of<Conv3d>(2, 3, Dims{2, 3, 1}, ConvOptions{.has_bias = false})},
      {"ConvTranspose1d",
       of<ConvTranspose1d>(4, 6, Dims{3},
                           ConvOptions{.stride = {2}, .padding = {1}, .output_padding = {1}, .groups = 2})},
      {"ConvTranspose2d", of<ConvTranspose2d>(3, 2, Dims{3, 2}, ConvOptions{.stride = {2}, .padding = {1}})},
      {"ConvTranspose3d", of<ConvTranspose3d>(2, 2, Dims{2})},
      {"BatchNorm1d", of<BatchNorm1d>(4)},
      {"BatchNorm3d", of<BatchNorm3d>(2)},
      {"GroupNorm", of<GroupNorm>(2, 4)},
      {"InstanceNorm", of<InstanceNorm>(3, 1e-5, true)},
      {"RNN", of<RNN>(3, 4, RNNOptions{.num_layers = 2})},
      {"RNNRelu", of<RNN>(3, 4, RNNOptions{}, true)},
      {"LSTM", of<LSTM>(3, 4, RNNOptions{.num_layers = 2, .batch_first = true, .bidirectional = true})},
      {"LSTMNoBatch", of<LSTM>(3, 4, RNNOptions{.has_bias = false})},
      {"GRU", of<GRU>(3, 4, RNNOptions{.bidirectional = true})},
  };
}

std::map<std::string, std::function<Made()>> losses() {
  const Tensor none;
  return {
      {"MSELoss", of<MSELoss>()},
      {"MSENone", of<MSELoss>(Reduction::kNone)},
      {"L1Loss", of<L1Loss>()},
      {"SmoothL1Loss", of<SmoothL1Loss>()},
      {"HuberLoss", of<HuberLoss>()},
      {"HuberSum", of<HuberLoss>(Reduction::kSum, 0.5)},
      {"CrossEntropyLoss", of<CrossEntropyLoss>()},
      {"CrossEntropyWeighted", of<CrossEntropyLoss>(weight(), 0, Reduction::kMean, 0.1)},
      {"NLLLoss", of<NLLLoss>(weight())},
      {"BCELoss", of<BCELoss>()},
      {"BCEWithLogitsLoss", of<BCEWithLogitsLoss>(none, Reduction::kMean, weight())},
      {"KLDivLoss", of<KLDivLoss>(Reduction::kSum)},
      {"SoftMarginLoss", of<SoftMarginLoss>()},
      {"PoissonNLLLoss", of<PoissonNLLLoss>(true, true)},
      {"HingeEmbeddingLoss", of<HingeEmbeddingLoss>()},
      {"CosineEmbeddingLoss", of<CosineEmbeddingLoss>(0.2)},
      {"MarginRankingLoss", of<MarginRankingLoss>(0.3)},
      {"TripletMarginLoss", of<TripletMarginLoss>(1, 2, 1e-6, true)},
      {"MultiMarginLoss", of<MultiMarginLoss>(2, 1, weight())},
      {"MultiLabelMarginLoss", of<MultiLabelMarginLoss>()},
      {"CTCLoss", of<CTCLoss>()},
  };
}

TEST(MoreLayers, EqualPyTorch) {
  auto made = activations();
  made.merge(spatial());
  made.merge(losses());
  const Value cases = load_cases("more_layers");
  EXPECT_EQ(get_items(cases, "cases").size(), made.size());
  for (const Value& saved : get_items(cases, "cases")) {
    const std::string name = item(saved, "name").to_string();
    SCOPED_TRACE(name);
    ASSERT_TRUE(made.contains(name));
    ops::Generator generator(22);
    const ops::GeneratorGuard guard(generator);
    compare_module(saved, *made[name](), generator);
  }
}

TEST(MoreLayers, SayWhatIsWrong) {
  EXPECT_THROW(Conv1d(3, 4, Dims{1, 2}), Error);
  EXPECT_THROW(Conv3d(3, 4, Dims{1}, ConvOptions{.output_padding = {1}}), Error);
  EXPECT_THROW(GroupNorm(2, 3), Error);
  MSELoss loss;
  EXPECT_THROW(loss.forward(Tensors{weight()}), Error);
  LSTM lstm(3, 4);
  EXPECT_THROW(lstm.forward(Tensors{weight()}), Error);
}

}  // namespace
}  // namespace tensord::nn::more_layers_test
