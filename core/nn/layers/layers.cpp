#include "core/nn/layers/layers.h"

#include <cmath>
#include <utility>

#include "core/nn/init.h"
#include "core/ops/run.h"
#include "core/tensor/grad_mode.h"
#include "ops/conv.h"
#include "ops/embedding.h"
#include "ops/factory.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/pointwise.h"
#include "ops/pool.h"
#include "ops/random.h"
#include "ops/view.h"

namespace tensord::nn {
namespace {

using ops::Value;

Tensor uninitialized(const Dims& sizes) { return Tensor::empty(sizes, DType::kFloat32); }
Tensor filled(const Dims& sizes, double value) {
  const Tensor tensor = uninitialized(sizes);
  init::constant_(tensor, value);
  return tensor;
}
Tensor optional(bool is_there, const Dims& sizes) { return is_there ? uninitialized(sizes) : Tensor(); }

// Initializes a linear or convolution layer: uniform with variance 1 / (3 · fan_in), for weight and bias.
void reset(const Tensor& weight, const Tensor& bias) {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  const int64_t fan_in = init::fans_of(weight).in;
  const double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  init::uniform_(bias, -bound, bound);
}

}  // namespace

Linear::Linear(int64_t in_features, int64_t out_features, bool has_bias)
    : Layer("Linear"),
      weight(register_parameter("weight", uninitialized({out_features, in_features}))),
      bias(register_parameter("bias", optional(has_bias, {out_features}))) {
  reset(weight, bias);
}
Tensor Linear::forward(const Tensor& input) { return ops::linear(input, weight, bias); }

namespace {

Dims conv_weight_sizes(int64_t in_channels, int64_t out_channels, const SizeList& window, int64_t groups) {
  const Dims kernel_size = window.expanded(2);
  check(kernel_size.size() == 2, "Conv2d: expected a kernel size of two numbers");
  check(groups > 0, "groups must be a positive integer");
  check(in_channels % groups == 0, "in_channels must be divisible by groups");
  check(out_channels % groups == 0, "out_channels must be divisible by groups");
  return {out_channels, in_channels / groups, kernel_size[0], kernel_size[1]};
}

}  // namespace

Conv2d::Conv2d(int64_t in_channels, int64_t out_channels, const SizeList& kernel_size, Conv2dOptions options)
    : Layer("Conv2d"),
      weight(register_parameter(
          "weight", uninitialized(conv_weight_sizes(in_channels, out_channels, kernel_size, options.groups)))),
      bias(register_parameter("bias", optional(options.has_bias, {out_channels}))),
      options_(std::move(options)) {
  reset(weight, bias);
}
Tensor Conv2d::forward(const Tensor& input) {
  return ops::conv2d(input, weight, bias, options_.stride.expanded(2), options_.padding.expanded(2),
                     options_.dilation.expanded(2), options_.groups);
}

BatchNorm::BatchNorm(std::string kind, int64_t min, int64_t max, int64_t features, BatchNormOptions options)
    : Layer(std::move(kind)),
      weight(register_parameter("weight", options.is_affine ? filled({features}, 1) : Tensor())),
      bias(register_parameter("bias", options.is_affine ? filled({features}, 0) : Tensor())),
      running_mean(register_buffer("running_mean", options.tracks_statistics ? filled({features}, 0) : Tensor())),
      running_var(register_buffer("running_var", options.tracks_statistics ? filled({features}, 1) : Tensor())),
      num_batches_tracked(
          register_buffer("num_batches_tracked", options.tracks_statistics ? Tensor::scalar<int64_t>(0) : Tensor())),
      min_(min),
      max_(max),
      options_(options) {}
Tensor BatchNorm::forward(const Tensor& input) {
  const int64_t ndim = input.ndim();
  check(ndim >= min_ && ndim <= max_, kind(), ": expected ", min_, min_ < max_ ? "D or " : "D",
        min_ < max_ ? concat(max_, "D") : "", " input (got ", ndim, "D input)");
  if (is_training() && num_batches_tracked.defined()) {
    const NoGradGuard without_grad;
    ops::add_(num_batches_tracked, 1);
  }
  const bool by_batch = is_training() || !running_mean.defined();
  return ops::batch_norm(input, weight, bias, running_mean, running_var, by_batch, options_.momentum, options_.eps,
                         false);
}

LayerNorm::LayerNorm(SizeList normalized_shape, double eps, bool is_affine)
    : Layer("LayerNorm"),
      weight(register_parameter("weight", is_affine ? filled(normalized_shape, 1) : Tensor())),
      bias(register_parameter("bias", is_affine ? filled(normalized_shape, 0) : Tensor())),
      normalized_shape_(std::move(normalized_shape)),
      eps_(eps) {}
Tensor LayerNorm::forward(const Tensor& input) {
  return ops::layer_norm(input, normalized_shape_, weight, bias, eps_, false);
}

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim, int64_t padding_idx, bool sparse)
    : Layer("Embedding"),
      weight(register_parameter("weight", uninitialized({num_embeddings, embedding_dim}))),
      padding_idx_(padding_idx),
      sparse_(sparse) {
  check(padding_idx < num_embeddings, "Padding_idx must be within num_embeddings");
  init::normal_(weight);
  if (padding_idx >= 0) {
    init::zeros_(weight.as_view({embedding_dim}, {1}, padding_idx * embedding_dim));
  }
}
Tensor Embedding::forward(const Tensor& indices) {
  return ops::embedding(weight, indices, padding_idx_, false, sparse_);
}

EmbeddingBag::EmbeddingBag(int64_t num_embeddings, int64_t embedding_dim, EmbeddingBagOptions options)
    : Module("EmbeddingBag"),
      weight(register_parameter("weight", uninitialized({num_embeddings, embedding_dim}))),
      options_(options) {
  check(options.padding_idx < num_embeddings, "Padding_idx must be within num_embeddings");
  init::normal_(weight);
  if (options.padding_idx >= 0) init::zeros_(weight.as_view({embedding_dim}, {1}, options.padding_idx * embedding_dim));
}
Tensors EmbeddingBag::forward(const Tensors& inputs) {
  check(!inputs.empty() && inputs.size() <= 3, kind(), ": expected indices, offsets and weights of rows but got ",
        inputs.size(), " tensors");
  Tensor indices = inputs[0], offsets = inputs.size() > 1 ? inputs[1] : Tensor();
  Tensor weights = inputs.size() > 2 ? inputs[2] : Tensor();
  check(!weights.defined() || weights.sizes() == indices.sizes(), kind(),
        ": expected weights in the shape of the indices");
  if (indices.ndim() == 2) {
    check(!offsets.defined(), kind(), ": indices of two dimensions have no offsets");
    const int64_t bags = indices.size(0), length = indices.size(1);
    offsets = ops::mul(ops::arange(bags, {.dtype = DType::kInt64}), length);
    if (options_.include_last_offset) offsets = ops::mul(ops::arange(bags + 1, {.dtype = DType::kInt64}), length);
    indices = ops::reshape(indices, Dims{-1});
    if (weights.defined()) weights = ops::reshape(weights, Dims{-1});
  }
  check(indices.ndim() == 1 && offsets.defined(), kind(),
        ": expected indices of one dimension with offsets, or of two");
  const auto padding = options_.padding_idx >= 0 ? std::optional<Int>(options_.padding_idx) : std::nullopt;
  return {std::get<0>(ops::embedding_bag(weight, indices, offsets.to(indices.dtype()), options_.scale_grad_by_freq,
                                         static_cast<int64_t>(options_.mode), false, weights,
                                         options_.include_last_offset, padding))};
}

Bilinear::Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features, bool has_bias)
    : Module("Bilinear"),
      weight(register_parameter("weight", uninitialized({out_features, in1_features, in2_features}))),
      bias(register_parameter("bias", optional(has_bias, {out_features}))) {
  check(in1_features > 0, "in1_features must be > 0, but got ", in1_features);
  const double bound = 1 / std::sqrt(static_cast<double>(in1_features));
  for (const Tensor& parameter : parameters()) init::uniform_(parameter, -bound, bound);
}
Tensors Bilinear::forward(const Tensors& inputs) {
  check(inputs.size() == 2, kind(), ": expected 2 tensors but got ", inputs.size());
  return {ops::bilinear(inputs[0], inputs[1], weight, bias)};
}

Dropout::Dropout(double p) : Layer("Dropout"), p_(p) {
  check(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
}
Tensor Dropout::forward(const Tensor& input) { return ops::dropout(input, p_, is_training()); }

Tensor ReLU::forward(const Tensor& input) { return ops::relu(input); }

GELU::GELU(std::string approximate) : Layer("GELU"), approximate_(std::move(approximate)) {
  check(approximate_ == "none" || approximate_ == "tanh", "approximate argument must be either none or tanh.");
}
Tensor GELU::forward(const Tensor& input) { return ops::gelu(input, {.approximate = approximate_}); }

Flatten::Flatten(int64_t start_dim, int64_t end_dim) : Layer("Flatten"), start_dim_(start_dim), end_dim_(end_dim) {}
Tensor Flatten::forward(const Tensor& input) { return ops::flatten(input, start_dim_, end_dim_); }

MaxPool2d::MaxPool2d(const SizeList& kernel_size, const SizeList& stride, const SizeList& padding)
    : Layer("MaxPool2d"),
      kernel_size_(kernel_size.expanded(2)),
      stride_(stride.expanded(2)),
      padding_(padding.expanded(2)) {}
Tensor MaxPool2d::forward(const Tensor& input) { return ops::max_pool2d(input, kernel_size_, stride_, padding_); }

Sequential::Sequential(std::vector<std::shared_ptr<Module>> modules) : Sequential() {
  for (auto& module : modules) push_back(std::move(module));
}
void Sequential::push_back(std::shared_ptr<Module> module) {
  register_module(std::to_string(size()), std::move(module));
}
Tensors Sequential::forward(const Tensors& inputs) {
  Tensors values = inputs;
  for (const auto& [name, module] : children()) values = module->run(std::move(values));
  return values;
}

}  // namespace tensord::nn
