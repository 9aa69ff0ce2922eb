#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/nn/layers/size_list.h"
#include "core/nn/module.h"

// PyTorch's layers: same parameters, names, initial values for a seed, and results.
namespace tensord::nn {

// x · weightᵀ + bias over the last dimension.
class Linear final : public Layer {
 public:
  Linear(int64_t in_features, int64_t out_features, bool has_bias = true);
  using Layer::forward;
  Tensor forward(const Tensor& input) override;
  const Tensor weight;  // [out_features, in_features]
  const Tensor bias;    // [out_features] or undefined
};

struct Conv2dOptions {
  SizeList stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  bool has_bias = true;
};
// [N, in, H, W] → [N, out, H', W'].
class Conv2d final : public Layer {
 public:
  Conv2d(int64_t in_channels, int64_t out_channels, const SizeList& kernel_size, Conv2dOptions options = {});
  using Layer::forward;
  Tensor forward(const Tensor& input) override;
  const Tensor weight;  // [out, in / groups, kernel…]
  const Tensor bias;    // [out] or undefined

 private:
  const Conv2dOptions options_;
};

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;
  bool is_affine = true;
  bool tracks_statistics = true;
};
class BatchNorm : public Layer {
 public:
  using Layer::forward;
  Tensor forward(const Tensor& input) override;
  const Tensor weight, bias;  // [features] or undefined
  const Tensor running_mean, running_var, num_batches_tracked;

 protected:
  // Accepts inputs of `min` to `max` dimensions, [N, features, …].
  BatchNorm(std::string kind, int64_t min, int64_t max, int64_t features, BatchNormOptions options);

 private:
  const int64_t min_, max_;
  const BatchNormOptions options_;
};
struct BatchNorm1d final : BatchNorm {
  explicit BatchNorm1d(int64_t features, BatchNormOptions options = {})
      : BatchNorm("BatchNorm1d", 2, 3, features, options) {}
};
struct BatchNorm2d final : BatchNorm {
  explicit BatchNorm2d(int64_t features, BatchNormOptions options = {})
      : BatchNorm("BatchNorm2d", 4, 4, features, options) {}
};
struct BatchNorm3d final : BatchNorm {
  explicit BatchNorm3d(int64_t features, BatchNormOptions options = {})
      : BatchNorm("BatchNorm3d", 5, 5, features, options) {}
};

class LayerNorm final : public Layer {
 public:
  TENSORD_LIST_ALONE(LayerNorm)
  explicit LayerNorm(SizeList normalized_shape, double eps = 1e-5, bool is_affine = true);
  using Layer::forward;
  Tensor forward(const Tensor& input) override;
  const Tensor weight, bias;

 private:
  const Dims normalized_shape_;
  const double eps_;
};

// Looks up rows of a table. The row `padding_idx` (-1: none) starts as zeros and gets no gradient.
class Embedding final : public Layer {
 public:
  // With `sparse`, the gradient of the table is a sparse tensor of the rows that were looked up.
  Embedding(int64_t num_embeddings, int64_t embedding_dim, int64_t padding_idx = -1, bool sparse = false);
  using Layer::forward;
  Tensor forward(const Tensor& indices) override;
  bool has_sparse_gradient() const { return sparse_; }
  const Tensor weight;  // [num_embeddings, embedding_dim]

 private:
  const int64_t padding_idx_;
  const bool sparse_;
};

enum class BagMode : int64_t { kSum = 0, kMean = 1, kMax = 2 };
struct EmbeddingBagOptions {
  BagMode mode = BagMode::kMean;
  int64_t padding_idx = -1;  // as in Embedding; bags ignore this row
  bool include_last_offset = false;
  bool scale_grad_by_freq = false;
};
// Looks up rows of a table and reduces them by bag. Inputs: indices [bags, length], or indices [count] and offsets
// [bags], the start of each bag; then optionally weights of the rows, in the indices' shape (sum only; pass undefined
// offsets for [bags, length]).
class EmbeddingBag final : public Module {
 public:
  EmbeddingBag(int64_t num_embeddings, int64_t embedding_dim, EmbeddingBagOptions options = {});
  Tensors forward(const Tensors& inputs) override;
  const Tensor weight;  // [num_embeddings, embedding_dim]

 private:
  const EmbeddingBagOptions options_;
};

// first · weight · second + bias, for each output feature. Inputs: first [..., in1], second [..., in2].
class Bilinear final : public Module {
 public:
  Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features, bool has_bias = true);
  Tensors forward(const Tensors& inputs) override;
  const Tensor weight;  // [out, in1, in2]
  const Tensor bias;    // [out] or undefined
};

class Dropout final : public Layer {
 public:
  explicit Dropout(double p = 0.5);
  using Layer::forward;
  Tensor forward(const Tensor& input) override;

 private:
  const double p_;
};

class ReLU final : public Layer {
 public:
  ReLU() : Layer("ReLU") {}
  using Layer::forward;
  Tensor forward(const Tensor& input) override;
};

class GELU final : public Layer {
 public:
  explicit GELU(std::string approximate = "none");  // or "tanh"
  using Layer::forward;
  Tensor forward(const Tensor& input) override;

 private:
  const std::string approximate_;
};

class Flatten final : public Layer {
 public:
  explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1);
  using Layer::forward;
  Tensor forward(const Tensor& input) override;

 private:
  const int64_t start_dim_, end_dim_;
};

class MaxPool2d final : public Layer {
 public:
  TENSORD_LIST_ALONE(MaxPool2d)
  explicit MaxPool2d(const SizeList& kernel_size, const SizeList& stride = {},
                     const SizeList& padding = 0);  // no stride: the kernel's size
  using Layer::forward;
  Tensor forward(const Tensor& input) override;

 private:
  const Dims kernel_size_, stride_, padding_;
};

// Runs modules in order; they are named "0", "1" …
class Sequential final : public Module {
 public:
  Sequential() : Module("Sequential") {}
  explicit Sequential(std::vector<std::shared_ptr<Module>> modules);
  void push_back(std::shared_ptr<Module> module);
  size_t size() const { return children().size(); }
  Module& operator[](size_t i) const { return *children()[i].second; }
  Tensors forward(const Tensors& inputs) override;
};
template <class... M>
std::shared_ptr<Sequential> sequential(std::shared_ptr<M>... modules) {
  return std::make_shared<Sequential>(std::vector<std::shared_ptr<Module>>{std::move(modules)...});
}

struct AttentionOptions {
  double dropout = 0;
  bool has_bias = true;
  bool batch_first = false;
};
// Multi-head attention. Inputs: query, key, value [steps, batch, embed_dim] ([batch, steps, …] with batch_first), then
// optionally a key padding mask [batch, steps] and an attention mask; masked positions are true or -inf. One result.
class MultiheadAttention final : public Module {
 public:
  MultiheadAttention(int64_t embed_dim, int64_t num_heads, AttentionOptions options = {});
  Tensors forward(const Tensors& inputs) override;
  const Tensor in_proj_weight, in_proj_bias;
  const std::shared_ptr<Linear> out_proj;

 private:
  Tensor mask_of(const Tensor& padding, const Tensor& attention, const Dims& scores, DType dtype) const;
  const int64_t embed_dim_, num_heads_;
  const AttentionOptions options_;
};

struct TransformerEncoderLayerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  bool is_gelu = false;  // otherwise relu
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;
};
// Attention and a feed-forward block, each with a residual connection and a layer norm. Inputs: source, then optionally
// an attention mask and a key padding mask.
class TransformerEncoderLayer final : public Module {
 public:
  TransformerEncoderLayer(int64_t d_model, int64_t num_heads, TransformerEncoderLayerOptions options = {});
  Tensors forward(const Tensors& inputs) override;

 private:
  Tensor attend(const Tensor& input, const Tensor& mask, const Tensor& padding);
  Tensor feed_forward(const Tensor& input);
  const TransformerEncoderLayerOptions options_;
  const std::shared_ptr<MultiheadAttention> self_attn_;
  const std::shared_ptr<Linear> linear1_;
  const std::shared_ptr<Dropout> dropout_;
  const std::shared_ptr<Linear> linear2_;
  const std::shared_ptr<LayerNorm> norm1_, norm2_;
  const std::shared_ptr<Dropout> dropout1_, dropout2_;
};

}  // namespace tensord::nn
