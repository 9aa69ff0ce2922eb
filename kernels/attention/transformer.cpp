// PyTorch's fused transformer operators, which scripted nn.MultiheadAttention and nn.TransformerEncoderLayer call in
// evaluation. The pass expand_layers usually replaces them before execution; this code runs those that are left, call
// by call.
#include "core/ops/transformer.h"
#include "core/autograd/variable.h"
#include "core/ops/attributes/exported.h"

#include "core/ops/attributes/may_lack_results.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/attention/attention_gradient.h"
#include "kernels/attention/nested.h"

namespace tensord::kernels {
namespace {

using ops::Returns;
using ops::Value;
using MaybeTensor = std::optional<Tensor>;

// Runs the calls, or infers their shapes.
struct Runner {
  using V = Value;
  Value call(const char* name, std::vector<Value> arguments) {
    const ops::Op& op = ops::get_op(name);
    const std::vector<Value> bound = ops::bind(op, std::move(arguments));
    return (bound[0].to_tensor().is_meta() ? ops::infer(op, bound) : ops::run(op, bound)).front();
  }
  Value constant(Value value) { return value; }
  Value constant(const char* text) { return Value(std::string(text)); }
};

Value optional(const MaybeTensor& t) { return t ? Value(*t) : Value(); }

void check_layer(const char* op, const Tensor& x, int64_t width, int64_t heads, const Tensor& qkv_weight) {
  check(x.ndim() == 3, op, ": expected 3-D query, got ", x.ndim(), "-D tensor");
  check(x.sizes()[2] == width, op, ": passed-in embed_dim ", width, " didn't match last dim of query ", x.sizes()[2]);
  check(heads > 0 && width % heads == 0, op, ": embed_dim ", width, " is not divisible by ", heads, " heads");
  check(qkv_weight.ndim() == 2 && qkv_weight.sizes()[0] == 3 * width, op,
        ": expected qkv_weight's first dim to be 3 * ", width);
}

bool is_same(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() &&
         (a.is_meta() ? b.is_meta() && a.impl() == b.impl()
                      : a.storage() == b.storage() && a.offset() == b.offset() && a.dtype() == b.dtype());
}

Returns multi_head_attention(const Tensor& query, const Tensor& key, const Tensor& value, int64_t width, int64_t heads,
                             const Tensor& qkv_weight, const Tensor& qkv_bias, const Tensor& proj_weight,
                             const Tensor& proj_bias, const MaybeTensor& mask, bool need_weights, bool average,
                             const std::optional<int64_t>& mask_type) {
  check_layer("_native_multi_head_attention", query, width, heads, qkv_weight);
  const ops::MultiHead m{
      width,        heads,  is_same(query, key) && is_same(key, value), mask.has_value(), false, mask_type.value_or(0),
      need_weights, average};
  Runner runner;
  const auto [out, weights] = ops::Transformer<Runner>(runner).attention(
      m, {query, key, value}, {qkv_weight, qkv_bias, proj_weight, proj_bias}, optional(mask), Value());
  return {{out, weights ? *weights : Value()}};
}

// The keys that no query sees, as bools that broadcast to the scores, or None.
Value hidden_keys(const Value& mask, const std::optional<int64_t>& type) {
  if (mask.is_none()) return mask;
  Runner runner;
  ops::MultiHead m;
  m.mask_type = type.value_or(0);
  return ops::Transformer<Runner>(runner).hidden_keys(m, mask, Value());
}

// The input of a layer: its rows, and the keys that are hidden. For a nested tensor the hidden keys are its padding.
Returns layer_input(const Value& src, const Value& mask, const std::optional<int64_t>& mask_type) {
  const NestedTensor* nested = as_nested(src);
  if (!nested) return {{src, hidden_keys(mask, mask_type)}};
  check(mask.is_none(), "a mask is not supported with a nested tensor");
  return {{nested->rows, hidden_keys(nested->padding, int64_t{1})}};
}

Value layer_result(const Tensor& rows, const Value& src) {
  const NestedTensor* nested = as_nested(src);
  return nested ? with_rows(*nested, rows) : Value(rows);
}

Value encoder_layer(const Value& src, int64_t width, int64_t heads, const Tensor& qkv_weight, const Tensor& qkv_bias,
                    const Tensor& proj_weight, const Tensor& proj_bias, bool use_gelu, bool norm_first, double eps,
                    const Tensor& norm_weight_1, const Tensor& norm_bias_1, const Tensor& norm_weight_2,
                    const Tensor& norm_bias_2, const Tensor& weight_1, const Tensor& bias_1, const Tensor& weight_2,
                    const Tensor& bias_2, const Value& mask, const std::optional<int64_t>& mask_type) {
  check_layer("_transformer_encoder_layer_fwd", rows_of(src), width, heads, qkv_weight);
  const std::vector<Value> input = layer_input(src, mask, mask_type).values;
  const ops::MultiHead m{width, heads, true, !input[1].is_none(), false, 0, false, false};
  const ops::Transformer<Runner>::Layer layer{{qkv_weight, qkv_bias, proj_weight, proj_bias},
                                              use_gelu,
                                              norm_first,
                                              eps,
                                              {norm_weight_1, norm_weight_2},
                                              {norm_bias_1, norm_bias_2},
                                              {weight_1, weight_2},
                                              {bias_1, bias_2}};
  Runner runner;
  const Value rows = ops::Transformer<Runner>(runner).encoder_layer(m, layer, input[0], input[1], Value());
  return layer_result(rows.to_tensor(), src);
}

// A call of scaled_dot_product_attention, whose bool masks are true where a key is seen.
struct DotProduct {
  const Tensor &query, &key, &value;
  const MaybeTensor& mask;
  double dropout;
  bool is_causal;
  std::optional<double> scale;
  bool is_safe = false;  // a query that sees no key gives zeros, as in PyTorch since 2.5; else NaN

  double factor() const { return scale.value_or(1 / std::sqrt(static_cast<double>(query.sizes().back()))); }
  bool has_bools() const { return mask && mask->dtype() == DType::kBool; }
  std::optional<double> fill() const {
    return has_bools() ? std::optional(-std::numeric_limits<double>::infinity()) : std::nullopt;
  }

  bool is_recorded() const {
    return is_grad_enabled() &&
           (autograd::requires_grad(query) || autograd::requires_grad(key) || autograd::requires_grad(value));
  }
  void check_arguments() const {
    check(query.ndim() >= 2, "scaled_dot_product_attention: query must have at least 2 dimensions");
    check(!(mask && is_causal),
          "scaled_dot_product_attention: explicit attn_mask should not be set when is_causal=True");
  }
  Tensor run() const {
    check_arguments();
    Runner runner;
    if (has_attention_backward(query) && (dropout > 0 || is_recorded())) {
      return runner
          .call("tensord::attention_training",
                {query, key, value, optional(mask), factor(), Value(fill()), !has_bools(), is_causal, is_safe, dropout})
          .to_tensor();
    }
    if (dropout > 0) return with_weights().first;
    return runner
        .call("tensord::attention",
              {query, key, value, optional(mask), factor(), Value(fill()), !has_bools(), is_causal, false, is_safe})
        .to_tensor();
  }
  // Also returns the weights. Dropout is for training.
  std::pair<Tensor, Tensor> with_weights() const {
    check_arguments();
    Runner runner;
    const PlainAttention plain{query, key, value, mask, factor(), fill(), !has_bools(), is_causal, is_safe};
    Value weights = plain.weights();
    if (dropout > 0 && !query.is_meta()) weights = runner.call("aten::dropout", {weights, dropout, true});
    return {runner.call("aten::matmul", {weights, value}).to_tensor(), weights.to_tensor()};
  }
};

OP("aten::_native_multi_head_attention").set<ops::MayLackResults>().impl(multi_head_attention).composite();
OP("aten::_transformer_encoder_layer_fwd").impl(encoder_layer).composite();
// Returns the weights whether they are needed or not, as PyTorch does.
OP("aten::_scaled_dot_product_attention")
    .set<ops::NotInPyTorch>()
    .impl([](const Tensor& query, const Tensor& key, const Tensor& value, const MaybeTensor& mask, double dropout,
             bool need_weights, bool is_causal) -> Returns {
      const DotProduct call{query, key, value, mask, dropout, is_causal, std::nullopt};
      const auto [out, weights] = call.with_weights();
      return {{need_weights || dropout > 0 ? out : call.run(), weights}};
    })
    .composite();
// Grouped queries: each head of keys and values serves several neighboring heads of queries. Where both are of the same
// number, the head dimension is split in two, and keys and values get a dimension of size 1, so that nothing is copied.
bool can_split_heads(const DotProduct& call) {
  if (call.query.ndim() < 3 || call.key.ndim() < 3 || call.value.ndim() < 3) return false;
  const int64_t heads = call.query.size(-3), own = call.key.size(-3);
  if (own <= 0 || heads % own != 0 || call.value.size(-3) != own) return false;
  return !call.mask || call.mask->ndim() < 3 || call.mask->size(-3) == 1 || call.mask->size(-3) == heads;
}
Tensor with_split_heads(const DotProduct& call) {
  const int64_t own = call.key.size(-3), times = call.query.size(-3) / own;
  Runner runner;
  const auto once = [&](const Tensor& x) { return runner.call("aten::unsqueeze", {x, -3}).to_tensor(); };
  const auto split = [&](const Tensor& x) {
    return runner.call("aten::unflatten.int", {x, -3, ops::make_int_list(Dims{own, times})}).to_tensor();
  };
  const Tensor query = split(call.query), key = once(call.key), value = once(call.value);
  MaybeTensor mask = call.mask;
  if (mask && mask->ndim() >= 3) mask = mask->size(-3) == 1 ? once(*mask) : split(*mask);
  const Tensor out = DotProduct{query, key, value, mask, call.dropout, call.is_causal, call.scale, call.is_safe}.run();
  return runner.call("aten::flatten.using_ints", {out, -4, -3}).to_tensor();
}
Tensor for_heads_of(const Tensor& query, const Tensor& x) {
  check(query.ndim() >= 3 && x.ndim() >= 3, "scaled_dot_product_attention: enable_gqa needs at least 3 dimensions");
  const int64_t heads = query.size(-3), own = x.size(-3);
  check(own > 0 && heads % own == 0,
        "scaled_dot_product_attention: Number of heads in key and value must divide the number of heads in query");
  return own == heads ? x
                      : Runner().call("aten::repeat_interleave.self_int", {x, heads / own, -3, Value()}).to_tensor();
}

OP("aten::scaled_dot_product_attention")
    .impl([](const Tensor& query, const Tensor& key, const Tensor& value, const MaybeTensor& mask, double dropout,
             bool is_causal, const std::optional<double>& scale, bool groups) {
      const DotProduct given{query, key, value, mask, dropout, is_causal, scale, mask.has_value()};
      if (groups && can_split_heads(given)) return with_split_heads(given);
      const Tensor keys = groups ? for_heads_of(query, key) : key, values = groups ? for_heads_of(query, value) : value;
      return DotProduct{query, keys, values, mask, dropout, is_causal, scale, mask.has_value()}.run();
    })
    .composite();
// A mask that may be missing, in the form that tensord::attention takes; see MultiHead.
OP("tensord::attention_mask").impl(hidden_keys).kind(ops::OpKind::kComposite);
// Calls around an expanded layer whose input may be a nested tensor; see expand_layers.
OP("tensord::layer_input").impl(layer_input).composite().dynamic_shape();
OP("tensord::layer_result").impl(layer_result).composite().dynamic_shape();

}  // namespace
}  // namespace tensord::kernels
