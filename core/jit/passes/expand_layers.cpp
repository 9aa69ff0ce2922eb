// expand_layers: replaces PyTorch's fused transformer operators by the operators they consist of
// (core/ops/transformer.h), so that their weights are packed and the following operators are fused. Sizes and flags
// must be constants. If a graph makes nested tensors (nn.TransformerEncoder with a padding mask), tensord::layer_input
// and tensord::layer_result around an expanded layer unpack and repack them; both are removed once the input is known
// to be a plain tensor.
#include <map>

#include "core/jit/ir/graph_builder.h"
#include "core/jit/ir/walk.h"
#include "core/jit/passes/packing.h"
#include "core/jit/passes/passes.h"
#include "core/jit/passes/same_constant.h"
#include "core/ops/registry.h"
#include "core/ops/transformer.h"

namespace tensord::jit {

using ops::Value;

namespace {

struct CallBuilder {
  using V = GraphValue*;
  GraphBuilder builder;

  GraphValue* call(const char* name, std::initializer_list<GraphValue*> inputs) {
    return builder.call(ops::get_op(name), std::span(inputs.begin(), inputs.size()))->output(0);
  }
  GraphValue* constant(Value value) { return builder.constant(std::move(value)); }
  GraphValue* constant(const char* text) { return constant(Value(std::string(text))); }
};

// Arguments by the names of the schema.
class Arguments {
 public:
  explicit Arguments(const Node& node) {
    const auto& arguments = node.op()->schema.arguments;
    for (size_t i = 0; i < arguments.size(); ++i) values_[arguments[i].name] = node.input(i);
  }
  GraphValue* operator[](const char* name) const { return values_.at(name); }
  const Value& constant(const char* name) const { return constant_of(values_.at(name)); }
  bool are_constant(std::initializer_list<const char*> names) const {
    return std::all_of(names.begin(), names.end(), [&](const char* name) { return values_.at(name)->constant(); });
  }
  bool is_none(const char* name) const {
    return values_.at(name)->constant() && values_.at(name)->constant()->is_none();
  }
  bool is_tensor(const char* name) const { return values_.at(name)->type()->kind() == ops::TypeKind::kTensor; }

 private:
  std::map<std::string, GraphValue*> values_;
};

// The type of a mask that is not None.
int64_t mask_type_of(const Arguments& a) { return a.is_none("mask_type") ? 0 : a.constant("mask_type").to_int(); }

bool fill(ops::MultiHead& m, const Arguments& a, const char* heads) {
  if (!a.are_constant({"embed_dim", heads})) return false;
  m.width = a.constant("embed_dim").to_int();
  m.heads = a.constant(heads).to_int();
  m.has_mask = !a.is_none("mask");
  m.may_lack_mask = m.has_mask && (!a.is_tensor("mask") || !a.are_constant({"mask_type"}));
  if (m.has_mask && !m.may_lack_mask) m.mask_type = mask_type_of(a);
  return m.heads > 0 && m.width > 0 && m.width % m.heads == 0;
}

using Transformer = ops::Transformer<CallBuilder>;

bool expand_attention(Node* node, PassContext& context) {
  const Arguments a(*node);
  ops::MultiHead m;
  if (!fill(m, a, "num_head") || !a.are_constant({"need_weights", "average_attn_weights"})) return false;
  m.is_self = a["query"] == a["key"] && a["key"] == a["value"];
  m.needs_weights = a.constant("need_weights").to_bool() && node->output(1)->has_uses();
  m.averages_weights = a.constant("average_attn_weights").to_bool();
  if ((m.needs_weights && m.may_lack_mask) || !context.take_change()) return false;
  CallBuilder builder{GraphBuilder(node)};
  const auto [out, weights] = Transformer(builder).attention(
      m, {a["query"], a["key"], a["value"]}, {a["qkv_weight"], a["qkv_bias"], a["proj_weight"], a["proj_bias"]},
      a["mask"], a["mask_type"]);
  node->output(0)->replace_all_uses_with(out);
  if (node->output(1)->has_uses())
    node->output(1)->replace_all_uses_with(weights ? *weights : builder.constant(Value()));
  node->destroy();
  return true;
}

bool makes_nested_tensors(Graph& graph) {
  bool found = false;
  for_each_node(graph.block(), [&](Node* node) { found |= node->is_op("aten::_nested_tensor_from_mask"); });
  return found;
}

bool expand_encoder_layer(Node* node, PassContext& context, bool may_be_nested) {
  const Arguments a(*node);
  ops::MultiHead m;
  if (!fill(m, a, "num_heads") || !a.are_constant({"use_gelu", "norm_first", "eps"})) return false;
  if (!context.take_change()) return false;
  CallBuilder builder{GraphBuilder(node)};
  GraphValue *src = a["src"], *mask = a["mask"], *mask_type = a["mask_type"];
  if (may_be_nested) {
    const Node* input = builder.call("tensord::layer_input", {src, mask, mask_type})->node();
    src = input->output(0);
    mask = input->output(1);
    mask_type = builder.constant(Value());
    m.has_mask = m.may_lack_mask = true;
  }
  const Transformer::Layer layer{{a["qkv_weight"], a["qkv_bias"], a["proj_weight"], a["proj_bias"]},
                                 a.constant("use_gelu").to_bool(),
                                 a.constant("norm_first").to_bool(),
                                 a.constant("eps").to_float(),
                                 {a["norm_weight_1"], a["norm_weight_2"]},
                                 {a["norm_bias_1"], a["norm_bias_2"]},
                                 {a["ffn_weight_1"], a["ffn_weight_2"]},
                                 {a["ffn_bias_1"], a["ffn_bias_2"]}};
  GraphValue* result = Transformer(builder).encoder_layer(m, layer, src, mask, mask_type);
  if (may_be_nested) result = builder.call("tensord::layer_result", {result, a["src"]});
  node->output()->replace_all_uses_with(result);
  node->destroy();
  return true;
}

// Removes the nested-tensor operators of a layer whose input is known to be a plain tensor.
bool drop_nesting(Node* node, PassContext& context, bool may_be_nested) {
  const Arguments a(*node);
  if ((may_be_nested && !a["src"]->known().is_strided()) || !context.take_change()) return false;
  if (node->is_op("tensord::layer_input")) {
    CallBuilder builder{GraphBuilder(node)};
    node->output(0)->replace_all_uses_with(a["src"]);
    node->output(1)->replace_all_uses_with(builder.call("tensord::attention_mask", {a["mask"], a["mask_type"]}));
  } else {
    node->output()->replace_all_uses_with(a["rows"]);
  }
  node->destroy();
  return true;
}

// Runs once it is known whether there is a mask.
bool expand_mask(Node* node, PassContext& context) {
  const Arguments a(*node);
  const bool is_none = a.is_none("mask");
  if (!is_none && (!a.is_tensor("mask") || !a.are_constant({"mask_type"}))) return false;
  if (!context.take_change()) return false;
  ops::MultiHead m;
  if (!is_none) m.mask_type = mask_type_of(a);  // without a mask the type does not matter
  CallBuilder builder{GraphBuilder(node)};
  node->output()->replace_all_uses_with(is_none ? a["mask"]
                                                : Transformer(builder).hidden_keys(m, a["mask"], a["mask_type"]));
  node->destroy();
  return true;
}

}  // namespace

bool expand_layers(Graph& graph, PassContext& context) {
  bool changed = false;
  const bool may_be_nested = makes_nested_tensors(graph);
  for_each_node(graph.block(), [&](Node* node) {
    if (node->is_op("tensord::layer_input") || node->is_op("tensord::layer_result"))
      changed |= drop_nesting(node, context, may_be_nested);
    else if (node->is_op("tensord::attention_mask"))
      changed |= expand_mask(node, context);
    else if (node->is_op("aten::_native_multi_head_attention"))
      changed |= expand_attention(node, context);
    else if (node->is_op("aten::_transformer_encoder_layer_fwd"))
      changed |= expand_encoder_layer(node, context, may_be_nested);
  });
  return changed;
}

}  // namespace tensord::jit
