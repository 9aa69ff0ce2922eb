#include "core/nn/layers/transformer.h"

#include <limits>

#include "core/nn/init.h"
#include "core/nn/layers/sum.h"
#include "core/ops/generator.h"
#include "core/ops/run.h"
#include "ops/factory.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::nn {
namespace {

// An optional trailing input.
Tensor input_at(const Tensors& inputs, size_t i) { return i < inputs.size() ? inputs[i] : Tensor(); }

// The first layer draws its initial values; the others are copies of it and draw nothing.
template <class L, class Options>
std::shared_ptr<ModuleList> make_layers(const char* kind, int64_t d_model, int64_t num_heads, int64_t num_layers,
                                        const Options& options) {
  check(num_layers > 0, kind, ": num_layers must be at least 1 but is ", num_layers);
  auto layers = std::make_shared<ModuleList>();
  layers->push_back(std::make_shared<L>(d_model, num_heads, options));
  const StateDict first = (*layers)[0].state_dict();
  ops::Generator unused(0);
  const ops::GeneratorGuard guard(unused);
  for (int64_t i = 1; i < num_layers; ++i) {
    layers->push_back(std::make_shared<L>(d_model, num_heads, options));
    (*layers)[static_cast<size_t>(i)].load_state_dict(first);
  }
  return layers;
}

std::shared_ptr<MultiheadAttention> make_attention(int64_t d_model, int64_t num_heads,
                                                   const TransformerDecoderLayerOptions& options) {
  return std::make_shared<MultiheadAttention>(d_model, num_heads,
                                              AttentionOptions{options.dropout, true, options.batch_first});
}

}  // namespace

TransformerDecoderLayer::TransformerDecoderLayer(int64_t d_model, int64_t num_heads,
                                                 TransformerDecoderLayerOptions options)
    : Module("TransformerDecoderLayer"),
      options_(options),
      self_attn_(register_module("self_attn", make_attention(d_model, num_heads, options))),
      multihead_attn_(register_module("multihead_attn", make_attention(d_model, num_heads, options))),
      linear1_(register_module("linear1", std::make_shared<Linear>(d_model, options.dim_feedforward))),
      dropout_(register_module("dropout", std::make_shared<Dropout>(options.dropout))),
      linear2_(register_module("linear2", std::make_shared<Linear>(options.dim_feedforward, d_model))),
      norm1_(register_module("norm1", std::make_shared<LayerNorm>(Dims{d_model}, options.layer_norm_eps))),
      norm2_(register_module("norm2", std::make_shared<LayerNorm>(Dims{d_model}, options.layer_norm_eps))),
      norm3_(register_module("norm3", std::make_shared<LayerNorm>(Dims{d_model}, options.layer_norm_eps))),
      dropout1_(register_module("dropout1", std::make_shared<Dropout>(options.dropout))),
      dropout2_(register_module("dropout2", std::make_shared<Dropout>(options.dropout))),
      dropout3_(register_module("dropout3", std::make_shared<Dropout>(options.dropout))) {}

Tensor TransformerDecoderLayer::feed_forward(const Tensor& input) {
  const Tensor inner = (*linear1_)(input);
  const Tensor active = options_.is_gelu ? ops::gelu(inner) : ops::relu(inner);
  return (*dropout3_)((*linear2_)((*dropout_)(active)));
}

Tensors TransformerDecoderLayer::forward(const Tensors& inputs) {
  check(inputs.size() >= 2 && inputs.size() <= 6, kind(), ": expected target, memory and up to four masks");
  const Tensor &memory = inputs[1], target_mask = input_at(inputs, 2), memory_mask = input_at(inputs, 3);
  const Tensor target_padding = input_at(inputs, 4), memory_padding = input_at(inputs, 5);
  const auto itself = [&](const Tensor& x) {
    return (*dropout1_)((*self_attn_)(x, x, x, target_padding, target_mask));
  };
  const auto remembered = [&](const Tensor& x) {
    return (*dropout2_)((*multihead_attn_)(x, memory, memory, memory_padding, memory_mask));
  };
  Tensor x = inputs[0];
  if (options_.norm_first) {
    x = add(x, itself((*norm1_)(x)));
    x = add(x, remembered((*norm2_)(x)));
    return {add(x, feed_forward((*norm3_)(x)))};
  }
  x = (*norm1_)(add(x, itself(x)));
  x = (*norm2_)(add(x, remembered(x)));
  return {(*norm3_)(add(x, feed_forward(x)))};
}

TransformerEncoder::TransformerEncoder(int64_t d_model, int64_t num_heads, int64_t num_layers,
                                       TransformerEncoderLayerOptions options, bool has_norm)
    : Module("TransformerEncoder"),
      layers_(register_module("layers", make_layers<TransformerEncoderLayer>("TransformerEncoder", d_model, num_heads,
                                                                             num_layers, options))) {
  if (has_norm) norm_ = register_module("norm", std::make_shared<LayerNorm>(Dims{d_model}, options.layer_norm_eps));
}
Tensors TransformerEncoder::forward(const Tensors& inputs) {
  check(!inputs.empty() && inputs.size() <= 3, kind(), ": expected a source and up to two masks");
  Tensor x = inputs[0];
  for (const auto& [name, layer] : layers_->children()) x = (*layer)(x, input_at(inputs, 1), input_at(inputs, 2));
  return {norm_ ? (*norm_)(x) : x};
}

TransformerDecoder::TransformerDecoder(int64_t d_model, int64_t num_heads, int64_t num_layers,
                                       TransformerDecoderLayerOptions options, bool has_norm)
    : Module("TransformerDecoder"),
      layers_(register_module("layers", make_layers<TransformerDecoderLayer>("TransformerDecoder", d_model, num_heads,
                                                                             num_layers, options))) {
  if (has_norm) norm_ = register_module("norm", std::make_shared<LayerNorm>(Dims{d_model}, options.layer_norm_eps));
}
Tensors TransformerDecoder::forward(const Tensors& inputs) {
  check(inputs.size() >= 2 && inputs.size() <= 6, kind(), ": expected target, memory and up to four masks");
  Tensors values = inputs;
  for (const auto& [name, layer] : layers_->children()) values[0] = layer->run(values).front();
  return {norm_ ? (*norm_)(values[0]) : values[0]};
}

Transformer::Transformer(int64_t d_model, int64_t num_heads, TransformerOptions options)
    : Module("Transformer"),
      encoder_(register_module("encoder", std::make_shared<TransformerEncoder>(
                                              d_model, num_heads, options.num_encoder_layers, options.layer, true))),
      decoder_(register_module("decoder", std::make_shared<TransformerDecoder>(
                                              d_model, num_heads, options.num_decoder_layers, options.layer, true))) {
  for (const Tensor& parameter : parameters()) {
    if (parameter.ndim() > 1) init::xavier_uniform_(parameter);
  }
}
Tensors Transformer::forward(const Tensors& inputs) {
  check(inputs.size() >= 2 && inputs.size() <= 8, kind(), ": expected source, target and up to six masks");
  const Tensor memory = (*encoder_)(inputs[0], input_at(inputs, 2), input_at(inputs, 5));
  return decoder_->run(
      {inputs[1], memory, input_at(inputs, 3), input_at(inputs, 4), input_at(inputs, 6), input_at(inputs, 7)});
}
Tensor Transformer::generate_square_subsequent_mask(int64_t size) {
  check(size >= 0, "generate_square_subsequent_mask: the size must not be below 0");
  const double never = -std::numeric_limits<double>::infinity();
  return ops::triu(ops::full(Dims{size, size}, never), 1);
}

}  // namespace tensord::nn
