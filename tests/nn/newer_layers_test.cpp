// Cells, transformers, bags, containers, pools and what else torch.nn has, against PyTorch's: names and first values,
// results, gradients, and what is drawn.
#include <concepts>
#include <functional>
#include <map>

#include "core/nn/layers/adaptive_softmax.h"
#include "core/nn/layers/containers.h"
#include "core/nn/layers/conv.h"
#include "core/nn/layers/layers.h"
#include "core/nn/layers/losses.h"
#include "core/nn/layers/norms.h"
#include "core/nn/layers/operator_layers.h"
#include "core/nn/layers/pooling.h"
#include "core/nn/layers/rnn.h"
#include "core/nn/layers/transformer.h"
#include "core/ops/run.h"
#include "tests/nn/compare_module.h"

namespace tensord::nn::newer_layers_test {
namespace {

using ops::Value;
using Made = std::map<std::string, std::function<std::shared_ptr<Module>()>>;

template <class M, class... A>
std::function<std::shared_ptr<Module>()> of(A... arguments) {
  return [=] { return std::make_shared<M>(arguments...); };
}

struct Listed final : Layer {
  Listed() : Layer("Listed") {
    layers = register_module("layers", std::make_shared<ModuleList>());
    layers->push_back(std::make_shared<Linear>(3, 4));
    layers->push_back(std::make_shared<Linear>(4, 2));
    heads = register_module("heads", std::make_shared<ModuleDict>());
    heads->insert("tanh", std::make_shared<Tanh>());
    heads->insert("linear", std::make_shared<Linear>(2, 2));
    scales = register_module("scales", std::make_shared<ParameterList>(Tensors{filled(0.5), filled(3)}));
    named = register_module("named", std::make_shared<ParameterDict>(std::vector<NamedTensor>{{"shift", filled(1)}}));
  }
  static Tensor filled(double value) { return ops::call_by_name("aten::full", Dims{2}, value); }
  using Layer::forward;
  Tensor forward(const Tensor& input) override {
    const Tensor x = layers->at<Linear>(1)((*layers)[0](input));
    const Tensor y = (*heads)["linear"]((*heads)["tanh"](x));
    const Tensor scaled = ops::call_by_name("aten::mul.Tensor", y, (*scales)[0]);
    return ops::call_by_name("aten::add.Tensor", ops::call_by_name("aten::add.Tensor", scaled, (*scales)[1], 1),
                             (*named)["shift"], 1);
  }
  std::shared_ptr<ModuleList> layers;
  std::shared_ptr<ModuleDict> heads;
  std::shared_ptr<ParameterList> scales;
  std::shared_ptr<ParameterDict> named;
};

Made with_weights() {
  const TransformerEncoderLayerOptions plain{.dim_feedforward = 12, .dropout = 0};
  TransformerEncoderLayerOptions first = plain, by_batch = plain;
  first.batch_first = first.norm_first = first.is_gelu = by_batch.batch_first = true;
  const TransformerOptions two{.num_encoder_layers = 2, .num_decoder_layers = 2, .layer = plain};
  return {
      {"RNNCell", of<RNNCell>(3, 4)},
      {"RNNCellRelu", of<RNNCell>(3, 4, true, true)},
      {"LSTMCell", of<LSTMCell>(3, 4)},
      {"GRUCell", of<GRUCell>(3, 4, false)},
      {"GRUCellNoBatch", of<GRUCell>(3, 4)},
      {"DecoderLayer", of<TransformerDecoderLayer>(8, 2, plain)},
      {"DecoderLayerMasks", of<TransformerDecoderLayer>(8, 2, first)},
      {"TransformerEncoder", of<TransformerEncoder>(8, 2, 3, plain)},
      {"TransformerEncoderNorm", of<TransformerEncoder>(8, 2, 2, by_batch, true)},
      {"TransformerDecoder", of<TransformerDecoder>(8, 2, 2, plain, true)},
      {"Transformer", of<Transformer>(8, 2, two)},
      {"EmbeddingBagsum", of<EmbeddingBag>(10, 4, EmbeddingBagOptions{.mode = BagMode::kSum, .padding_idx = 2})},
      {"EmbeddingBagmean", of<EmbeddingBag>(10, 4, EmbeddingBagOptions{.padding_idx = 2})},
      {"EmbeddingBagmax", of<EmbeddingBag>(10, 4, EmbeddingBagOptions{.mode = BagMode::kMax, .padding_idx = 2})},
      {"EmbeddingBagRows", of<EmbeddingBag>(10, 4, EmbeddingBagOptions{.mode = BagMode::kSum})},
      {"EmbeddingBagLast", of<EmbeddingBag>(10, 4, EmbeddingBagOptions{.include_last_offset = true})},
      {"Bilinear", of<Bilinear>(3, 4, 5)},
      {"InstanceNorm1d", of<InstanceNorm1d>(3)},
      {"InstanceNorm2d", of<InstanceNorm2d>(3, 1e-5, 0.1, true, true)},
      {"InstanceNorm3d", of<InstanceNorm3d>(2)},
      {"InstanceNormNoBatch", of<InstanceNorm1d>(3)},
      {"ModuleList", of<Listed>()},
      {"AdaptiveLogSoftmax", of<AdaptiveLogSoftmaxWithLoss>(16, 20, std::vector<int64_t>{5, 12}, 4, true)},
  };
}

Made pools() {
  const std::vector<double> ratio{0.5, 0.7}, twice{2}, odd{1.5, 2.3}, line{2.5}, exact{1.7}, thrice{3};
  return {
      {"LPPool1d", of<LPPool1d>(2, Dims{3}, Dims{2})},
      {"LPPool2d", of<LPPool2d>(3, Dims{2, 3}, Dims{}, true)},
      {"FractionalMaxPool2d", of<FractionalMaxPool2d>(Dims{3}, Dims{4, 5})},
      {"FractionalMaxPool2dRatio", of<FractionalMaxPool2d>(Dims{2}, ratio)},
      {"FractionalMaxPool3d", of<FractionalMaxPool3d>(Dims{2}, Dims{3})},
      {"MaxUnpool1d", of<MaxUnpool1d>(Dims{2})},
      {"MaxUnpool2d", of<MaxUnpool2d>(Dims{2})},
      {"MaxUnpool3d", of<MaxUnpool3d>(Dims{2})},
      {"Upsample", of<Upsample>(UpsampleOptions{.scale_factor = twice})},
      {"UpsampleSize", of<Upsample>(UpsampleOptions{.size = {5, 7}, .mode = "bilinear"})},
      {"UpsampleCubic", of<Upsample>(UpsampleOptions{.scale_factor = odd, .mode = "bicubic"})},
      {"UpsampleLine", of<Upsample>(UpsampleOptions{.scale_factor = line, .mode = "linear", .align_corners = true})},
      {"UpsampleVolume", of<Upsample>(UpsampleOptions{.size = {5}, .mode = "trilinear"})},
      {"UpsampleExact", of<Upsample>(UpsampleOptions{.scale_factor = exact, .mode = "nearest-exact"})},
      {"UpsamplingNearest2d", of<UpsamplingNearest2d>(thrice)},
      {"UpsamplingBilinear2d", of<UpsamplingBilinear2d>(Dims{6, 5})},
      {"Unfold", of<Unfold>(Dims{2, 3}, Dims{1}, Dims{1}, Dims{2})},
      {"Fold", of<Fold>(Dims{4, 5}, Dims{2, 3}, Dims{1}, Dims{1})},
      {"LocalResponseNorm", of<LocalResponseNorm>(3, 0.2, 0.6, 1.5)},
      {"LocalResponseNorm1d", of<LocalResponseNorm>(2)},
      {"ConstantPad3d", of<ConstantPad3d>(Dims{1}, 2.5)},
      {"ReflectionPad1d", of<ReflectionPad1d>(Dims{2})},
      {"ReplicationPad3d", of<ReplicationPad3d>(Dims{1, 0, 2, 1, 0, 1})},
  };
}

Made others() {
  const Tensor weight = Tensor::empty(Dims{4}, DType::kFloat32);
  std::copy_n(std::vector<float>{1, 2, 0.5, 1.5}.begin(), 4, weight.data<float>());
  return {
      {"ChannelShuffle", of<ChannelShuffle>(2)},
      {"Softsign", of<Softsign>()},
      {"Tanhshrink", of<Tanhshrink>()},
      {"Softmin", of<Softmin>(1)},
      {"Softmax2d", of<Softmax2d>()},
      {"RReLU", of<RReLU>()},
      {"AlphaDropout", of<AlphaDropout>(0.3)},
      {"FeatureAlphaDropout", of<FeatureAlphaDropout>(0.3)},
      {"Dropout1d", of<Dropout1d>(0.4)},
      {"Dropout2d", of<Dropout2d>(0.4)},
      {"Dropout3d", of<Dropout3d>(0.4)},
      {"CosineSimilarity", of<CosineSimilarity>(1)},
      {"PairwiseDistance", of<PairwiseDistance>(1.0, 1e-6, true)},
      {"GaussianNLLLoss", of<GaussianNLLLoss>(true)},
      {"GaussianNLLLossRows", of<GaussianNLLLoss>(false, 1e-6, Reduction::kSum)},
      {"MultiLabelSoftMarginLoss", of<MultiLabelSoftMarginLoss>(weight)},
      {"TripletMarginWithDistanceLoss",
       of<TripletMarginWithDistanceLoss>(TripletMarginWithDistanceLoss::Distance(), 0.7, true)},
  };
}

TEST(NewerLayers, EqualPyTorch) {
  auto made = with_weights();
  made.merge(pools());
  made.merge(others());
  const Value cases = load_cases("newer_layers");
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

TEST(NewerLayers, RunningStatisticsAreUsedWhenNotTraining) {
  InstanceNorm2d norm(2, 1e-5, 0.1, false, true);
  const Tensor x = ops::call_by_name("aten::add.Scalar", ops::call_by_name("aten::randn", Dims{3, 2, 4, 4}), 5, 1);
  norm(x);
  EXPECT_GT(norm.running_mean.data<float>()[0], 0.3f);
  norm.eval();
  // The mean is far from zero, because the norm uses the running statistics, not the image's own.
  EXPECT_GT(ops::call_by_name("aten::mean", norm(x)).item_double(), 2);
  Dropout2d dropout(0.9);
  dropout.eval();
  EXPECT_LT(difference(dropout(x), x), 1e-12);
}

TEST(NewerLayers, AdaptiveSoftmaxGivesAllClasses) {
  AdaptiveLogSoftmaxWithLoss softmax(16, 20, {5, 12});
  const Tensor x = ops::call_by_name("aten::randn", Dims{3, 16});
  const Tensor all = softmax.log_prob(x);
  ASSERT_EQ(describe(all), "float32[3, 20]");
  const Tensor sums = ops::call_by_name("aten::sum.dim_IntList", ops::call_by_name("aten::exp", all), Dims{1}, false);
  for (int64_t i = 0; i < 3; ++i) EXPECT_NEAR(sums.data<float>()[i], 1, 1e-5);
  const Tensor best = softmax.predict(x);
  const Tensor picked = softmax.run({x, best})[0];
  EXPECT_LT(difference(picked, ops::call_by_name("aten::amax", all, Dims{1}, false)), 1e-6);
  EXPECT_THROW(softmax.run({x, ops::call_by_name("aten::full", Dims{3}, int64_t{20})}), Error);
  EXPECT_THROW(AdaptiveLogSoftmaxWithLoss(16, 20, {5, 5}), Error);
}

// A number for a list of sizes, as PyTorch takes it; what is not a whole number does not compile.
template <class T>
concept Size = std::convertible_to<T, SizeList>;
static_assert(Size<int> && Size<int64_t> && Size<Dims> && !Size<bool> && !Size<double> && !Size<const char*>);

TEST(NewerLayers, OneNumberStandsForAllDimensions) {
  const Tensor x = ops::call_by_name("aten::randn", Dims{2, 1, 9, 8});
  const auto same = [&x](Module& one, Module& other) {
    for (size_t i = 0; i < one.parameters().size(); ++i) other.parameters()[i].copy_from(one.parameters()[i]);
    EXPECT_EQ(difference(one.run({x})[0], other.run({x})[0]), 0) << one.kind();
  };
  Conv2d conv(1, 8, 3), listed(1, 8, {3, 3});
  EXPECT_EQ(describe(conv(x)), "float32[2, 8, 7, 6]");
  same(conv, listed);
  Conv2d strided(1, 2, 3, {.stride = 2, .padding = 1, .dilation = 2});
  Conv2d strided_listed(1, 2, {3, 3}, {.stride = {2, 2}, .padding = {1, 1}, .dilation = {2, 2}});
  same(strided, strided_listed);
  ConvTranspose2d back(1, 2, 3, {.stride = 2, .output_padding = 1}),
      back_listed(1, 2, {3, 3}, {.stride = {2, 2}, .output_padding = {1, 1}});
  same(back, back_listed);
  MaxPool2d pool(2), pool_listed({2, 2});
  same(pool, pool_listed);
  MaxPool2d moving(3, 1, 1), moving_listed({3, 3}, {1, 1}, {1, 1});
  same(moving, moving_listed);
  AvgPool2d mean(2, 1), mean_listed({2, 2}, {1, 1});
  same(mean, mean_listed);
  AdaptiveAvgPool2d adaptive(3), adaptive_listed({3, 3});
  same(adaptive, adaptive_listed);
  LPPool2d power(2, 3), power_listed(2, {3, 3});
  same(power, power_listed);
  Unfold windows(3), windows_listed({3, 3});
  same(windows, windows_listed);
  ReflectionPad2d pad(1), pad_listed({1, 1, 1, 1});
  same(pad, pad_listed);
  Upsample upsample({.size = 4}), upsample_listed({.size = {4, 4}});
  same(upsample, upsample_listed);
  LayerNorm norm(8), norm_listed({8});
  same(norm, norm_listed);
  EXPECT_EQ(FractionalMaxPool2d(2, 3)(x).sizes(), (Dims{2, 1, 3, 3}));
}

TEST(NewerLayers, SayWhatIsWrong) {
  const Tensor x = Tensor::empty(Dims{2, 3}, DType::kFloat32);
  ModuleList list;
  EXPECT_THROW(list(x), Error);
  EXPECT_THROW(list[0], Error);
  list.push_back(std::make_shared<Tanh>());
  EXPECT_THROW(list.at<Linear>(0), Error);
  EXPECT_THROW(ModuleDict()["a"], Error);
  EXPECT_THROW(ParameterList()[0], Error);
  EXPECT_THROW(ParameterDict()["a"], Error);
  EXPECT_THROW(LSTMCell(4, 2)(x), Error);
  EXPECT_THROW(RNNCell(3, 4).run({x, x}), Error);
  EXPECT_THROW(TransformerEncoder(8, 2, 0), Error);
  EXPECT_THROW(Dropout2d()(x), Error);
  EXPECT_THROW(Dropout2d(1.5), Error);
  EXPECT_THROW(ReflectionPad2d(Dims{1, 2}), Error);
  EXPECT_THROW(Upsample(UpsampleOptions{}), Error);
  EXPECT_THROW(Upsample(UpsampleOptions{.size = {2}, .mode = "area"}), Error);
  EXPECT_THROW(Upsample(UpsampleOptions{.size = {2}, .mode = "bilinear"})(x), Error);
  EXPECT_THROW(FractionalMaxPool2d(Dims{2}, Dims{}), Error);
  EXPECT_THROW(MaxUnpool2d(Dims{2}).run({x}), Error);
  EXPECT_THROW(EmbeddingBag(4, 2).run({x.to(DType::kInt64), x.to(DType::kInt64)}), Error);
  EXPECT_THROW(InstanceNorm2d(3)(x), Error);
  const Tensor minus = ops::call_by_name("aten::full", Dims{2, 3}, -1.0);
  EXPECT_THROW(GaussianNLLLoss().run({x, x, minus}), Error);
}

}  // namespace
}  // namespace tensord::nn::newer_layers_test
