#include <limits>
#include <utility>

#include "core/nn/init.h"
#include "core/nn/layers/layers.h"
#include "core/nn/layers/sum.h"
#include "core/ops/run.h"
#include "ops/attention.h"
#include "ops/linear.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::nn {
namespace {

using ops::Value;

// Converts a mask to an additive one: true becomes -inf.
Tensor additive(const Tensor& mask, DType dtype) {
  if (mask.dtype() != DType::kBool) return mask;
  const Tensor zeros = Tensor::scalar(0.0, dtype).to(mask.device());
  return ops::masked_fill(ops::expand(zeros, mask.sizes()), mask, -std::numeric_limits<double>::infinity());
}

}  // namespace

MultiheadAttention::MultiheadAttention(int64_t embed_dim, int64_t num_heads, AttentionOptions options)
    : Module("MultiheadAttention"),
      in_proj_weight(
          register_parameter("in_proj_weight", Tensor::empty(Dims{3 * embed_dim, embed_dim}, DType::kFloat32))),
      in_proj_bias(register_parameter(
          "in_proj_bias", options.has_bias ? Tensor::empty(Dims{3 * embed_dim}, DType::kFloat32) : Tensor())),
      out_proj(register_module("out_proj", std::make_shared<Linear>(embed_dim, embed_dim, options.has_bias))),
      embed_dim_(embed_dim),
      num_heads_(num_heads),
      options_(options) {
  check(num_heads > 0 && embed_dim % num_heads == 0, "embed_dim must be divisible by num_heads");
  init::xavier_uniform_(in_proj_weight);
  if (!options.has_bias) return;
  init::zeros_(in_proj_bias);
  init::zeros_(out_proj->bias);
}

Tensor MultiheadAttention::mask_of(const Tensor& padding, const Tensor& attention, const Dims& scores,
                                   DType dtype) const {
  Tensor mask;
  if (attention.defined()) {
    mask = additive(attention, dtype);
    if (mask.ndim() == 3) mask = ops::reshape(mask, scores);  // [batch · heads, steps, keys]
  }
  if (!padding.defined()) return mask;
  const Tensor hidden = ops::reshape(additive(padding, dtype), Dims{scores[0], 1, 1, scores[3]});
  return mask.defined() ? add(mask, hidden) : hidden;
}

Tensors MultiheadAttention::forward(const Tensors& inputs) {
  check(inputs.size() >= 3 && inputs.size() <= 5, "MultiheadAttention: expected query, key, value and up to two masks");
  const int64_t batch_dim = options_.batch_first ? 0 : 1, step_dim = 1 - batch_dim;
  Tensor heads[3];
  for (size_t i = 0; i < 3; ++i) {
    const Tensor& x = inputs[i];
    check(x.ndim() == 3 && x.size(2) == embed_dim_, "was expecting embedding dimension of ", embed_dim_, ", but got ",
          describe(x));
    const auto begin = static_cast<int64_t>(i) * embed_dim_;
    const auto part = [&](const Tensor& all) {
      return all.defined() ? ops::narrow(all, 0, begin, embed_dim_) : Tensor();
    };
    const Tensor projected = ops::linear(x, part(in_proj_weight), part(in_proj_bias));
    const Dims sizes{x.size(0), x.size(1), num_heads_, embed_dim_ / num_heads_};
    // [batch, heads, steps, depth]
    heads[i] = ops::permute(ops::reshape(projected, sizes), Dims{batch_dim, 2, step_dim, 3});
  }
  const Tensor none;
  const Dims scores{heads[0].size(0), num_heads_, heads[0].size(2), heads[1].size(2)};
  const Tensor mask =
      mask_of(inputs.size() > 3 ? inputs[3] : none, inputs.size() > 4 ? inputs[4] : none, scores, heads[0].dtype());
  const double dropout = is_training() ? options_.dropout : 0;
  const Tensor mixed = ops::scaled_dot_product_attention(heads[0], heads[1], heads[2], mask, dropout);
  const Dims back = options_.batch_first ? Dims{0, 2, 1, 3} : Dims{2, 0, 1, 3};
  return {(*out_proj)(ops::flatten(ops::permute(mixed, back), 2, 3))};
}

TransformerEncoderLayer::TransformerEncoderLayer(int64_t d_model, int64_t num_heads,
                                                 TransformerEncoderLayerOptions options)
    : Module("TransformerEncoderLayer"),
      options_(options),
      self_attn_(register_module(
          "self_attn", std::make_shared<MultiheadAttention>(
                           d_model, num_heads, AttentionOptions{options.dropout, true, options.batch_first}))),
      linear1_(register_module("linear1", std::make_shared<Linear>(d_model, options.dim_feedforward))),
      dropout_(register_module("dropout", std::make_shared<Dropout>(options.dropout))),
      linear2_(register_module("linear2", std::make_shared<Linear>(options.dim_feedforward, d_model))),
      norm1_(register_module("norm1", std::make_shared<LayerNorm>(Dims{d_model}, options.layer_norm_eps))),
      norm2_(register_module("norm2", std::make_shared<LayerNorm>(Dims{d_model}, options.layer_norm_eps))),
      dropout1_(register_module("dropout1", std::make_shared<Dropout>(options.dropout))),
      dropout2_(register_module("dropout2", std::make_shared<Dropout>(options.dropout))) {}

Tensor TransformerEncoderLayer::attend(const Tensor& input, const Tensor& mask, const Tensor& padding) {
  return (*dropout1_)((*self_attn_)(input, input, input, padding, mask));
}

Tensor TransformerEncoderLayer::feed_forward(const Tensor& input) {
  const Tensor inner = (*linear1_)(input);
  const Tensor active = options_.is_gelu ? ops::gelu(inner) : ops::relu(inner);
  return (*dropout2_)((*linear2_)((*dropout_)(active)));
}

Tensors TransformerEncoderLayer::forward(const Tensors& inputs) {
  check(!inputs.empty() && inputs.size() <= 3, "TransformerEncoderLayer: expected a source and up to two masks");
  const Tensor none;
  const Tensor &mask = inputs.size() > 1 ? inputs[1] : none, &padding = inputs.size() > 2 ? inputs[2] : none;
  Tensor x = inputs[0];
  if (options_.norm_first) {
    x = add(x, attend((*norm1_)(x), mask, padding));
    return {add(x, feed_forward((*norm2_)(x)))};
  }
  x = (*norm1_)(add(x, attend(x, mask, padding)));
  return {(*norm2_)(add(x, feed_forward(x)))};
}

}  // namespace tensord::nn
