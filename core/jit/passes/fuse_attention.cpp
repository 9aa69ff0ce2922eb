// fuse_attention: replaces attention written with plain operators by one call of tensord::attention. It matches
// backwards from the end: scale and mask of query @ key, softmax, product with the values, with views in between. It
// needs shapes and dtypes (GraphValue::known), so it runs for one input signature. Intermediate results must have no
// other reader. In-place operators are left to functionalize.
#include <cmath>
#include <optional>

#include "core/jit/ir/alias.h"
#include "core/jit/passes/packing.h"
#include "core/jit/passes/passes.h"
#include "core/jit/passes/views.h"
#include "core/ops/registry.h"
#include "core/tensor/device_copy.h"

namespace tensord::jit {

namespace {

bool is_float(const Tensor* t) { return t && t->dtype() == DType::kFloat32; }

Dims lead_of(const Dims& sizes) { return sizes.span().first(sizes.size() - 2); }
Dims with_matrix(Dims lead, const Dims& sizes) {
  lead.push_back(sizes[sizes.size() - 2]);
  lead.push_back(sizes.back());
  return lead;
}

// The parts of a matched attention.
struct Found {
  Node* scores = nullptr;  // the product of queries and keys
  Node* result = nullptr;  // the product with the values
  GraphValue* mask = nullptr;
  Dims mask_lead;  // the leading dimensions of the scores where the mask is applied
  std::optional<double> fill;
  bool fills_where = true;
  double scale = 1;
};

class AttentionFuser {
 public:
  AttentionFuser(Graph& graph, PassContext& context, const ops::Op& attention)
      : graph_(graph), context_(context), attention_(attention), alias_(graph) {}

  bool run() {
    bool changed = false;
    std::vector<Node*> products;
    for_each_node(graph_.block(), [&](Node* node) {
      if (is_product(node)) products.push_back(node);
    });
    for (Node* product : products) {
      Found found;
      found.result = product;
      if (!find(found) || !is_safe(found) || !context_.take_change()) continue;
      rewrite(found);
      changed = true;
    }
    return changed;
  }

 private:
  static bool is_product(const Node* node) { return is_any_of(node, {"aten::matmul", "aten::bmm"}); }

  // The node that computes `value` for the product alone, past operators that return their operand.
  Node* maker(GraphValue* value, const Node* result) const {
    for (;;) {
      Node* node = value->node();
      if (!node || node->block() != result->block() || value->uses().size() != 1 || !node->op()) return nullptr;
      if (!is_any_of(node, {"aten::contiguous", "aten::to.dtype", "aten::type_as", "aten::detach"})) return node;
      if (known_dtype(node->input()) != known_dtype(value)) return node;
      value = node->input();
    }
  }

  static std::optional<DType> known_dtype(const GraphValue* value) {
    const Tensor* t = known_tensor(value);
    return t ? std::optional(t->dtype()) : std::nullopt;
  }

  bool find(Found& found) const {
    Node* softmax = maker(found.result->input(0), found.result);
    if (!is_any_of(softmax, {"aten::softmax.int", "aten::_softmax"})) {
      // A view of the weights in the shape of the product.
      if (!is_any_of(softmax, {"aten::view", "aten::reshape"}) || !keeps_matrices(softmax)) return false;
      softmax = maker(softmax->input(), found.result);
      if (!is_any_of(softmax, {"aten::softmax.int", "aten::_softmax"})) return false;
    }
    const Tensor* scores = known_tensor(softmax->input());
    const auto dim = known_number(softmax->input(1));
    if (!is_float(scores) || !is_float(known_tensor(softmax->output())) || scores->ndim() < 2 || !dim) return false;
    if (*dim != -1 && *dim != static_cast<double>(scores->ndim() - 1)) return false;
    GraphValue* value = softmax->input();
    while (Node* node = maker(value, found.result)) {
      if (is_product(node) || is_any_of(node, {"aten::baddbmm"})) return finish(found, node);
      value = step(found, node);
      if (!value) return false;
    }
    return false;
  }

  static bool keeps_matrices(const Node* view) {
    const Tensor *from = known_tensor(view->input()), *to = known_tensor(view->output());
    if (!from || !to || from->ndim() < 2 || to->ndim() < 2) return false;
    const Dims &a = from->sizes(), &b = to->sizes();
    return a.back() == b.back() && a[a.size() - 2] == b[b.size() - 2];
  }

  // Matches a call between the product and the softmax; returns the scores that it takes.
  GraphValue* step(Found& found, Node* node) const {
    if (is_any_of(node, {"aten::view", "aten::reshape"})) return keeps_matrices(node) ? node->input() : nullptr;
    if (is_any_of(node, {"aten::mul.Scalar", "aten::mul.Tensor", "aten::div.Scalar", "aten::div.Tensor"})) {
      const auto number = known_number(node->input(1));
      if (!number || !is_float(known_tensor(node->input()))) return nullptr;
      found.scale *= node->op()->schema.name == "aten::mul" ? *number : 1 / *number;
      return node->input();
    }
    // One mask that is not itself scaled.
    if (found.mask || found.scale != 1) return nullptr;
    const auto take = [&](GraphValue* mask, GraphValue* scores) -> GraphValue* {
      const Tensor *m = known_tensor(mask), *s = known_tensor(scores), *out = known_tensor(node->output());
      if (!m || !is_float(s) || !is_float(out) || !(s->sizes() == out->sizes()) || s->ndim() < 2) return nullptr;
      if (m->dtype() != (found.fill ? DType::kBool : DType::kFloat32)) return nullptr;
      found.mask = mask;
      found.mask_lead = lead_of(s->sizes());
      return scores;
    };
    if (node->is_op("aten::add.Tensor") && known_number(node->input(2)) == 1.0) {
      const bool is_first = leads_to_product(node->input(0), found.result);
      return take(node->input(is_first ? 1 : 0), node->input(is_first ? 0 : 1));
    }
    if (is_any_of(node, {"aten::masked_fill.Scalar", "aten::masked_fill.Tensor"})) {
      found.fill = known_number(node->input(2));
      return found.fill ? take(node->input(1), node->input(0)) : nullptr;
    }
    if (is_any_of(node, {"aten::where.self", "aten::where.ScalarOther", "aten::where.ScalarSelf"})) {
      const auto first = known_number(node->input(1)), second = known_number(node->input(2));
      found.fills_where = first.has_value();
      found.fill = first ? first : second;
      return found.fill ? take(node->input(0), node->input(first ? 2 : 1)) : nullptr;
    }
    return nullptr;
  }

  // Of the operands of a sum, the scores are the one that comes from a product.
  bool leads_to_product(GraphValue* value, const Node* result) const {
    while (Node* node = maker(value, result)) {
      if (is_product(node) || is_any_of(node, {"aten::baddbmm"})) return true;
      if (node->inputs().empty() || !is_any_of(node, {"aten::view", "aten::reshape", "aten::mul.Scalar",
                                                      "aten::mul.Tensor", "aten::div.Scalar", "aten::div.Tensor"}))
        return false;
      value = node->input();
    }
    return false;
  }

  bool finish(Found& found, Node* product) const {
    found.scores = product;
    if (product->is_op("aten::baddbmm")) {
      const auto beta = known_number(product->input(3)), alpha = known_number(product->input(4));
      if (!beta || !alpha || (*beta != 0 && *beta != 1) || (*beta == 1 && (found.mask || found.scale != 1)))
        return false;
      found.scale *= *alpha;
      const Tensor *scores = known_tensor(product->output()), *mask = known_tensor(product->input(0));
      if (!scores || !is_float(mask)) return false;
      if (*beta == 1) {
        found.mask = product->input(0);
        found.mask_lead = lead_of(scores->sizes());
      }
    }
    const Tensor* const result = known_tensor(found.result->output());
    if (!result) return false;
    const Device device = result->device();
    if (!attention_.kernel(device.kind)) return false;
    for (GraphValue* operand : {query(found), key(found), found.result->input(1)}) {
      const Tensor* t = known_tensor(operand);
      if (!is_float(t) || t->ndim() < 2 || t->numel() == 0 || t->device() != device) return false;
    }
    if (found.mask && known_tensor_of(found.mask).device() != device) return false;
    return std::isfinite(found.scale);
  }

  static GraphValue* query(const Found& found) {
    return found.scores->input(found.scores->is_op("aten::baddbmm") ? 1 : 0);
  }
  static GraphValue* key(const Found& found) {  // transposed, as the product takes it
    return found.scores->input(found.scores->is_op("aten::baddbmm") ? 2 : 1);
  }

  // The fused call reads the operands later than the original operators.
  bool is_safe(const Found& found) const {
    for (const GraphValue* operand : {query(found), key(found), found.result->input(1)}) {
      if (alias_.may_be_written_between(operand, found.scores, found.result)) return false;
    }
    return !found.mask || !alias_.may_be_written_between(found.mask, found.scores, found.result);
  }

  // If the queries are multiplied by a number, the number can become part of the scale.
  GraphValue* unscaled(GraphValue* operand, double& scale, const Found& found) const {
    const Node* node = operand->node();
    if (!is_any_of(node, {"aten::mul.Scalar", "aten::mul.Tensor", "aten::div.Scalar", "aten::div.Tensor"}))
      return operand;
    const auto number = known_number(node->input(1));
    if (operand->uses().size() != 1 || !number || *number == 0 || !std::isfinite(*number)) return operand;
    if (!is_float(known_tensor(node->input()))) return operand;
    if (alias_.may_be_written_between(node->input(), node, found.result)) return operand;
    scale *= node->op()->schema.name == "aten::mul" ? *number : 1 / *number;
    return node->input();
  }

  // The leading dimensions that the call works in: those of the mask, or those of the next view of the result, so that
  // the heads can come last.
  static Dims lead_for(const Found& found, const GraphValue* result) {
    if (found.mask) return found.mask_lead;
    const Dims& own = known_tensor_of(result).sizes();
    const Node* next = only_user(result);
    if (is_any_of(next, {"aten::view", "aten::reshape"}) && next->input() == result && keeps_matrices(next))
      return lead_of(known_tensor_of(next->output()).sizes());
    return lead_of(own);
  }

  static Node* only_user(const GraphValue* value) {
    return value->uses().size() == 1 && !value->uses().front().block ? value->uses().front().node : nullptr;
  }

  void rewrite(const Found& found) {
    ViewBuilder views(found.result);
    double scale = found.scale;
    GraphValue* result = found.result->output();
    const Dims lead = lead_for(found, result);
    const Dims scores_lead = lead_of(known_tensor_of(found.scores->output()).sizes());
    const Dims result_lead = lead_of(known_tensor_of(result).sizes());
    const auto brought = [&](GraphValue* value, const Dims& from) {
      const Dims& sizes = known_tensor_of(value).sizes();
      if (from == lead) return value;
      // Only an operand with the product's own leading dimensions has all of their elements.
      if (!(lead_of(sizes) == from)) value = views.expand(value, with_matrix(from, sizes));
      return views.reshape(value, with_matrix(lead, sizes));
    };
    GraphValue* query_value = brought(unscaled(query(found), scale, found), scores_lead);
    GraphValue* key_value = brought(views.transpose(key(found), -2, -1), scores_lead);
    GraphValue* value_value = brought(found.result->input(1), result_lead);
    const Tensor* mask_tensor = found.mask && found.mask->constant() ? &known_tensor_of(found.mask) : nullptr;
    const bool is_causal = mask_tensor && is_causal_mask(*mask_tensor, found);
    Node* target = found.result;
    // This call also absorbs the next view of the result, and a transpose that puts the heads last.
    if (!(lead == result_lead)) {
      Node* next = only_user(result);
      const Dims led = with_matrix(lead, known_tensor_of(result).sizes());
      const Tensor* made = is_any_of(next, {"aten::view", "aten::reshape"}) ? known_tensor(next->output()) : nullptr;
      const bool goes_on = made && next->block() == target->block() && made->sizes() == led;
      if (goes_on) target = next;
    }
    const bool is_reshaped = !(lead == result_lead) && target == found.result;
    Node* swap = is_reshaped ? nullptr : only_user(target->output());
    const bool transposes = swap && swap->block() == target->block() && swaps_heads(*swap) && !lead.empty();
    if (transposes) target = swap;
    GraphValue* inputs[] = {query_value,
                            key_value,
                            value_value,
                            is_causal || !found.mask ? views.none() : found.mask,
                            views.constant(scale),
                            found.fill && !is_causal ? views.constant(*found.fill) : views.none(),
                            views.constant(found.fills_where),
                            views.constant(is_causal),
                            views.constant(transposes)};
    GraphValue* out = views.call(attention_, inputs);
    if (is_reshaped) out = views.reshape(out, known_tensor_of(result).sizes());
    target->output()->replace_all_uses_with(out);
  }

  // Whether the node swaps rows and heads.
  static bool swaps_heads(const Node& node) {
    const Tensor* from = known_tensor(node.input());
    if (!from || from->ndim() < 3) return false;
    const int64_t n = from->ndim();
    if (node.is_op("aten::transpose.int")) {
      const auto a = known_number(node.input(1)), b = known_number(node.input(2));
      if (!a || !b) return false;
      const int64_t x = wrap_dim(static_cast<int64_t>(*a), n), y = wrap_dim(static_cast<int64_t>(*b), n);
      return std::min(x, y) == n - 3 && std::max(x, y) == n - 2;
    }
    if (!node.is_op("aten::permute")) return false;
    const auto dims = known_value(node.input(1));
    if (!dims || !dims->is_list() || static_cast<int64_t>(dims->to_list()->items.size()) != n) return false;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t expected = i == n - 3 ? n - 2 : i == n - 2 ? n - 3 : i;
      if (wrap_dim(dims->to_list()->items[static_cast<size_t>(i)].to_int(), n) != expected) return false;
    }
    return true;
  }

  // Whether a constant mask hides exactly the later columns from each row.
  static bool is_causal_mask(const Tensor& given, const Found& found) {
    const Dims& sizes = given.sizes();
    const int64_t n = sizes.empty() ? 0 : sizes.back();
    if (given.ndim() < 2 || sizes[sizes.size() - 2] != n || given.numel() != n * n) return false;
    if (found.fill && *found.fill != -INFINITY) return false;
    const Tensor mask = host_copy(given);
    const Dims rows = mask.strides().span().last(2);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const int64_t at = i * rows[0] + j * rows[1];
        if (found.fill) {
          if ((mask.data<bool>()[at] == found.fills_where) != (j > i)) return false;
        } else if (mask.data<float>()[at] != (j > i ? -INFINITY : 0.0f)) {
          return false;
        }
      }
    }
    return true;
  }

  Graph& graph_;
  PassContext& context_;
  const ops::Op& attention_;
  AliasAnalysis alias_;
};

}  // namespace

bool fuse_attention(Graph& graph, PassContext& context) {
  const ops::Op* attention = ops::find_op("tensord::attention");
  return attention && AttentionFuser(graph, context, *attention).run();
}

}  // namespace tensord::jit
