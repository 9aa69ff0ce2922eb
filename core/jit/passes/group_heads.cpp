// group_heads: removes the repetition of keys and values for grouped queries (expand and reshape, or
// repeat_interleave). Attention gets the heads as two dimensions, of which keys and values have size 1 in the second,
// or scaled_dot_product_attention gets enable_gqa. It needs shapes (GraphValue::known), so it runs for one input
// signature, after fuse_attention. dce removes the unused copies.
#include <algorithm>
#include <optional>

#include "core/jit/ir/alias.h"
#include "core/jit/ir/walk.h"
#include "core/jit/passes/passes.h"
#include "core/jit/passes/views.h"

namespace tensord::jit {

namespace {

constexpr const char* kAttention = "tensord::attention";
constexpr const char* kDotProduct = "aten::scaled_dot_product_attention";

// A tensor [… heads, rows, columns] in which each head is repeated for its neighbors.
struct Repeated {
  Node* copy;        // the node that repeats them
  GraphValue* once;  // before the repetition; if `is_split`, with a dimension of size 1 after the heads
  bool is_split;
  int64_t heads, times;
};

// Splits the dimension of heads, third from the end, in two.
Dims split(const Dims& sizes, int64_t heads, int64_t times) {
  Dims out = sizes.span().first(sizes.size() - 3);
  for (const int64_t size : {heads, times, sizes[sizes.size() - 2], sizes.back()}) out.push_back(size);
  return out;
}

std::optional<Repeated> expanded(const GraphValue* value, const Dims& sizes) {
  Node* const copy = value->node();
  if (!is_any_of(copy, {"aten::view", "aten::reshape"})) return std::nullopt;
  const Node* const expand = copy->input()->node();
  if (!is_any_of(expand, {"aten::expand"})) return std::nullopt;
  const Tensor *from = known_tensor(expand->input()), *to = known_tensor(expand->output());
  const size_t at = sizes.size() - 2;  // index of the dimension that repeats
  if (!from || !to || from->sizes().size() != sizes.size() + 1 || from->sizes()[at] != 1) return std::nullopt;
  const int64_t heads = from->sizes()[at - 1], times = to->sizes()[at];
  if (!(to->sizes() == split(sizes, heads, times)) || !(from->sizes() == split(sizes, heads, 1))) return std::nullopt;
  return Repeated{copy, expand->input(), true, heads, times};
}

std::optional<Repeated> interleaved(const GraphValue* value, const Dims& sizes) {
  Node* const copy = value->node();
  if (!is_any_of(copy, {"aten::repeat_interleave.self_int"})) return std::nullopt;
  const Tensor* from = known_tensor(copy->input());
  const auto times = known_number(copy->input(1)), dim = known_number(copy->input(2));
  if (!from || !times || !dim || *times < 1 || from->sizes().size() != sizes.size()) return std::nullopt;
  const auto n = static_cast<int64_t>(sizes.size());
  if (wrap_dim(static_cast<int64_t>(*dim), n) != n - 3) return std::nullopt;
  return Repeated{copy, copy->input(), false, from->sizes()[sizes.size() - 3], static_cast<int64_t>(*times)};
}

bool swaps_matrix(const Node* node) {
  if (!is_any_of(node, {"aten::transpose.int"})) return false;
  const Tensor* known = known_tensor(node->output());
  const auto a = known_number(node->input(1)), b = known_number(node->input(2));
  if (!known || known->ndim() < 2 || !a || !b) return false;
  const int64_t x = wrap_dim(static_cast<int64_t>(*a), known->ndim()),
                y = wrap_dim(static_cast<int64_t>(*b), known->ndim());
  return std::min(x, y) == known->ndim() - 2 && std::max(x, y) == known->ndim() - 1;
}

// Skips two transposes that cancel each other.
const GraphValue* plain(const GraphValue* value) {
  const Node* const second = value->node();
  const Node* const first = swaps_matrix(second) ? second->input()->node() : nullptr;
  return swaps_matrix(first) ? first->input() : value;
}

class HeadGrouper {
 public:
  HeadGrouper(Graph& graph, PassContext& context) : graph_(graph), context_(context), alias_(graph) {}

  bool run() {
    bool changed = false;
    for_each_node(graph_.block(), [&](Node* node) {
      if (is_any_of(node, {kAttention, kDotProduct})) changed |= group(node);
    });
    return changed;
  }

 private:
  // The operands are read later than before.
  std::optional<Repeated> repeated(const GraphValue* value, const Node* reader) const {
    const Tensor* known = known_tensor(value);
    if (!known || known->ndim() < 3 || value->type()->kind() != ops::TypeKind::kTensor) return std::nullopt;
    auto found = expanded(value, known->sizes());
    if (!found) found = interleaved(value, known->sizes());
    if (!found || found->times < 2 || known->size(-3) != found->heads * found->times) return std::nullopt;
    if (found->copy->block() != reader->block()) return std::nullopt;
    for (const GraphValue* read : {value, static_cast<const GraphValue*>(found->once)}) {
      if (alias_.may_be_written_between(read, found->copy, reader)) return std::nullopt;
    }
    return found;
  }

  bool group(Node* node) {
    const Tensor* query = known_tensor(node->input(0));
    const auto key = repeated(plain(node->input(1)), node), value = repeated(plain(node->input(2)), node);
    if (!query || !key || !value || key->heads != value->heads || key->times != value->times) return false;
    if (query->ndim() < 3 || query->size(-3) != key->heads * key->times) return false;
    return node->is_op(kAttention) ? split_heads(node, *key, *value) : tell(node, *key, *value);
  }

  static GraphValue* as_once(ViewBuilder& views, const Repeated& of, bool is_split) {
    if (of.is_split == is_split) return of.once;
    const Dims& sizes = known_tensor_of(of.copy->output()).sizes();
    Dims wanted = split(sizes, of.heads, 1);
    if (!is_split) wanted.erase(wanted.size() - 3);
    return views.reshape(of.once, wanted);
  }

  static bool is_none(const GraphValue* value) { return value->constant() && value->constant()->is_none(); }

  // Whether a mask is the same for all heads, or has one entry per query head.
  static bool fits(const GraphValue* mask, const Repeated& key) {
    if (is_none(mask)) return true;
    const Tensor* known = known_tensor(mask);
    return known && (known->ndim() < 3 || known->size(-3) == 1 || known->size(-3) == key.heads * key.times);
  }

  static GraphValue* split_mask(ViewBuilder& views, GraphValue* mask, const Repeated& key) {
    const Tensor* known = known_tensor(mask);
    if (is_none(mask) || known->ndim() < 3) return mask;
    const bool is_alike = known->size(-3) == 1;
    return views.reshape(mask, split(known->sizes(), is_alike ? 1 : key.heads, is_alike ? 1 : key.times));
  }

  bool split_heads(Node* node, const Repeated& key, const Repeated& value) {
    const Tensor* result = known_tensor(node->output());
    const auto transposes = known_number(node->input(8));
    if (!result || !transposes || !fits(node->input(3), key) || !context_.take_change()) return false;
    ViewBuilder views(node);
    std::vector<GraphValue*> inputs(node->inputs().begin(), node->inputs().end());
    inputs[0] = views.reshape(inputs[0], split(known_tensor_of(inputs[0]).sizes(), key.heads, key.times));
    inputs[1] = as_once(views, key, true);
    inputs[2] = as_once(views, value, true);
    inputs[3] = split_mask(views, inputs[3], key);
    inputs[8] = views.constant(false);
    GraphValue* out = views.call(*node->op(), inputs);
    Dims sizes = result->sizes();
    if (*transposes != 0) std::swap(sizes[sizes.size() - 3], sizes[sizes.size() - 2]);
    out = views.reshape(out, sizes);
    if (*transposes != 0) out = views.transpose(out, -3, -2);
    node->output()->replace_all_uses_with(out);
    return true;
  }

  bool tell(Node* node, const Repeated& key, const Repeated& value) {
    constexpr size_t kEnableGqa = 7;
    if (known_number(node->input(kEnableGqa)) != 0.0 || !context_.take_change()) return false;
    ViewBuilder views(node);
    node->replace_input(1, as_once(views, key, false));
    node->replace_input(2, as_once(views, value, false));
    node->replace_input(kEnableGqa, views.constant(true));
    return true;
  }

  Graph& graph_;
  PassContext& context_;
  AliasAnalysis alias_;
};

}  // namespace

bool group_heads(Graph& graph, PassContext& context) { return HeadGrouper(graph, context).run(); }

}  // namespace tensord::jit
