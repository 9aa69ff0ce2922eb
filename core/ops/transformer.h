#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "core/ops/value.h"

namespace tensord::ops {

// The decomposition of PyTorch's fused transformer operators, written once for running them and for rewriting a graph.
// A Builder has a type V (a value of the run, or of the graph), `call(op, {arguments…})`, which returns the first
// result, and `constant(Value)`.
struct MultiHead {
  int64_t width = 0, heads = 0;
  bool is_self = true;  // query, key and value are the same tensor
  bool has_mask = false;
  bool may_lack_mask = false;  // whether there is a mask is not known before the run
  int64_t mask_type = 0;       // 1: (batch, keys); else it broadcasts to the scores
  bool needs_weights = false, averages_weights = true;
};

template <class Builder>
class Transformer {
 public:
  using V = typename Builder::V;
  explicit Transformer(Builder& builder) : b_(builder) {}

  struct Projections {
    V qkv_weight, qkv_bias, out_weight, out_bias;
  };
  // Returns the result, and the weights if requested. Masks are true for hidden keys.
  std::pair<V, std::optional<V>> attention(const MultiHead& m, const V (&inputs)[3], const Projections& p, V mask,
                                           const V& mask_type) {
    V heads[3];
    const int64_t depth = m.width / m.heads;
    if (m.is_self) {
      const V all = b_.call("aten::unflatten.int",
                            {linear(inputs[0], p.qkv_weight, p.qkv_bias), number(2), ints(3, m.heads, depth)});
      for (int64_t i = 0; i < 3; ++i) heads[i] = swap(b_.call("aten::select.int", {all, number(2), number(i)}));
    } else {
      for (int64_t i = 0; i < 3; ++i) {
        const V one = linear(inputs[i], part(p.qkv_weight, i, m.width), part(p.qkv_bias, i, m.width));
        heads[i] = swap(b_.call("aten::unflatten.int", {one, number(2), ints(m.heads, depth)}));
      }
    }
    const double scale = 1 / std::sqrt(static_cast<double>(depth)), hidden = -std::numeric_limits<double>::infinity();
    if (m.has_mask) mask = hidden_keys(m, mask, mask_type);
    V out;
    std::optional<V> weights;
    if (m.needs_weights) {
      const V query = b_.call("aten::mul.Scalar", {heads[0], b_.constant(scale)});
      V scores = b_.call("aten::matmul", {query, b_.call("aten::transpose.int", {heads[1], number(-2), number(-1)})});
      if (m.has_mask) scores = b_.call("aten::masked_fill.Scalar", {scores, mask, b_.constant(hidden)});
      weights = b_.call("aten::softmax.int", {scores, number(-1), none()});
      out = swap(b_.call("aten::matmul", {*weights, heads[2]}));
      if (m.averages_weights) weights = b_.call("aten::mean.dim", {*weights, ints(1), flag(false), none()});
    } else {
      out = b_.call("tensord::attention",
                    {heads[0], heads[1], heads[2], m.has_mask ? mask : none(), b_.constant(scale),
                     m.has_mask ? b_.constant(hidden) : none(), flag(true), flag(false), flag(true)});
    }
    out = b_.call("aten::flatten.using_ints", {out, number(2), number(3)});
    return {linear(out, p.out_weight, p.out_bias), weights};
  }

  // The mask as bools that broadcast to the scores.
  V hidden_keys(const MultiHead& m, V mask, const V& mask_type) {
    if (m.may_lack_mask) return b_.call("tensord::attention_mask", {mask, mask_type});
    mask =
        b_.call("aten::to.dtype", {mask, number(static_cast<int64_t>(DType::kBool)), flag(false), flag(false), none()});
    for (int i = 0; m.mask_type == 1 && i < 2; ++i) mask = b_.call("aten::unsqueeze", {mask, number(1)});
    return mask;
  }

  struct Layer {
    Projections projections;
    bool use_gelu, norm_first;
    double eps;
    V norm_weights[2], norm_biases[2], weights[2], biases[2];
  };
  V encoder_layer(const MultiHead& m, const Layer& layer, V x, V mask, const V& mask_type) {
    const auto attend = [&](const V& in) {
      return attention(m, {in, in, in}, layer.projections, mask, mask_type).first;
    };
    const auto norm = [&](const V& in, int i) {
      return b_.call("aten::layer_norm", {in, ints(m.width), layer.norm_weights[i], layer.norm_biases[i],
                                          b_.constant(layer.eps), flag(true)});
    };
    const auto feed = [&](const V& in) {
      const V inner = linear(in, layer.weights[0], layer.biases[0]);
      const V active =
          layer.use_gelu ? b_.call("aten::gelu", {inner, b_.constant("none")}) : b_.call("aten::relu", {inner});
      return linear(active, layer.weights[1], layer.biases[1]);
    };
    const auto add = [&](const V& a, const V& b) { return b_.call("aten::add.Tensor", {a, b, number(1)}); };
    if (layer.norm_first) {
      x = add(x, attend(norm(x, 0)));
      return add(x, feed(norm(x, 1)));
    }
    x = norm(add(x, attend(x)), 0);
    return norm(add(x, feed(x)), 1);
  }

 private:
  V number(int64_t value) { return b_.constant(value); }
  V flag(bool value) { return b_.constant(value); }
  V none() { return b_.constant(Value()); }
  template <class... I>
  V ints(I... values) {
    return b_.constant(make_int_list(Dims{static_cast<int64_t>(values)...}));
  }
  V linear(const V& x, const V& weight, const V& bias) { return b_.call("aten::linear", {x, weight, bias}); }
  V swap(const V& x) { return b_.call("aten::transpose.int", {x, number(1), number(2)}); }
  V part(const V& x, int64_t i, int64_t width) {
    return b_.call("aten::slice.Tensor", {x, number(0), number(i * width), number((i + 1) * width), number(1)});
  }

  Builder& b_;
};

}  // namespace tensord::ops
