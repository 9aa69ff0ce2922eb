#pragma once

#include <cstdint>
#include <memory>

#include "core/nn/layers/containers.h"
#include "core/nn/layers/layers.h"

// Stacks of transformer layers; MultiheadAttention and TransformerEncoderLayer are in layers.h. Sequences are [steps,
// batch, d_model], or [batch, steps, d_model] with batch_first. An undefined mask means none; masked positions are true
// or -inf. Attention masks are [steps, steps or memory's] or one for each head and batch; key padding masks are [batch,
// steps].
namespace tensord::nn {

using TransformerDecoderLayerOptions = TransformerEncoderLayerOptions;

// Self-attention, attention to the memory, a feed-forward block. Inputs: target, memory, then optionally the target's
// mask, the memory's mask, the target's and the memory's key padding masks.
class TransformerDecoderLayer final : public Module {
 public:
  TransformerDecoderLayer(int64_t d_model, int64_t num_heads, TransformerDecoderLayerOptions options = {});
  Tensors forward(const Tensors& inputs) override;

 private:
  Tensor feed_forward(const Tensor& input);
  const TransformerDecoderLayerOptions options_;
  const std::shared_ptr<MultiheadAttention> self_attn_, multihead_attn_;
  const std::shared_ptr<Linear> linear1_;
  const std::shared_ptr<Dropout> dropout_;
  const std::shared_ptr<Linear> linear2_;
  const std::shared_ptr<LayerNorm> norm1_, norm2_, norm3_;
  const std::shared_ptr<Dropout> dropout1_, dropout2_, dropout3_;
};

// A stack of layers with equal initial values, followed by a norm if `has_norm`. Inputs: source, then optionally its
// mask and its key padding mask.
class TransformerEncoder final : public Module {
 public:
  TransformerEncoder(int64_t d_model, int64_t num_heads, int64_t num_layers,
                     TransformerEncoderLayerOptions options = {}, bool has_norm = false);
  Tensors forward(const Tensors& inputs) override;

 private:
  const std::shared_ptr<ModuleList> layers_;
  std::shared_ptr<LayerNorm> norm_;
};

// Inputs as in TransformerDecoderLayer.
class TransformerDecoder final : public Module {
 public:
  TransformerDecoder(int64_t d_model, int64_t num_heads, int64_t num_layers,
                     TransformerDecoderLayerOptions options = {}, bool has_norm = false);
  Tensors forward(const Tensors& inputs) override;

 private:
  const std::shared_ptr<ModuleList> layers_;
  std::shared_ptr<LayerNorm> norm_;
};

struct TransformerOptions {
  int64_t num_encoder_layers = 6, num_decoder_layers = 6;
  TransformerEncoderLayerOptions layer = {};
};
// Encoder and decoder. Inputs: source, target, then optionally masks of source, target and memory, and key padding
// masks of source, target and memory.
class Transformer final : public Module {
 public:
  explicit Transformer(int64_t d_model = 512, int64_t num_heads = 8, TransformerOptions options = {});
  Tensors forward(const Tensors& inputs) override;
  // [size, size]: -inf above the diagonal, zeros elsewhere.
  static Tensor generate_square_subsequent_mask(int64_t size);

 private:
  const std::shared_ptr<TransformerEncoder> encoder_;
  const std::shared_ptr<TransformerDecoder> decoder_;
};

}  // namespace tensord::nn
