// remove_transposes: removes a copy to row-major order if all its readers accept any strides: products and attention,
// also through views that the strides allow. Views themselves cost nothing in a plan. It needs shapes and strides
// (GraphValue::known).
#include "core/base/error.h"
#include "core/jit/ir/alias.h"
#include "core/jit/passes/packing.h"
#include "core/jit/passes/passes.h"
#include "core/jit/passes/views.h"

namespace tensord::jit {

namespace {

bool takes_strides(const Node& node) {
  return is_any_of(&node, {"tensord::attention", "aten::matmul", "aten::bmm", "aten::baddbmm"});
}

class TransposeRemover {
 public:
  TransposeRemover(Graph& graph, PassContext& context) : context_(context), alias_(graph) {}

  bool run(Graph& graph) {
    bool changed = false;
    for_each_node(graph.block(), [&](Node* node) { changed |= remove(node); });
    return changed;
  }

 private:
  bool remove(Node* node) {
    if (!is_any_of(node, {"aten::contiguous"}) || known_number(node->input(1)) != 0.0) return false;
    GraphValue *from = node->input(), *to = node->output();
    const Tensor* known = known_tensor(from);
    if (!known || known->is_contiguous() || !to->has_uses()) return false;
    if (alias_.has_writers(from) || alias_.has_writers(to) || !all_take(to, *known) || !context_.take_change())
      return false;
    to->replace_all_uses_with(from);
    refresh(from);
    return true;
  }

  // Whether all readers accept the value with these strides.
  static bool all_take(const GraphValue* value, const Tensor& strided) {
    for (const GraphValue::Use& use : value->uses()) {
      if (use.block) return false;
      const Node& user = *use.node;
      if (takes_strides(user)) continue;
      const Tensor* result = user.outputs().size() == 1 ? known_tensor(user.output()) : nullptr;
      if (!result || use.index != 0) return false;
      if (is_any_of(&user, {"aten::view", "aten::reshape"})) {
        bool possible = false;
        const Dims strides = view_strides(strided.sizes(), strided.strides(), result->sizes(), &possible);
        if (!possible || !all_take(user.output(), Tensor::meta_strided(result->sizes(), strides, result->dtype())))
          return false;
      } else if (is_any_of(&user, {"aten::transpose.int"})) {
        const auto a = known_number(user.input(1)), b = known_number(user.input(2));
        if (!a || !b) return false;
        Dims sizes = strided.sizes(), strides = strided.strides();
        const auto x = static_cast<size_t>(wrap_dim(static_cast<int64_t>(*a), strided.ndim())),
                   y = static_cast<size_t>(wrap_dim(static_cast<int64_t>(*b), strided.ndim()));
        std::swap(sizes[x], sizes[y]);
        std::swap(strides[x], strides[y]);
        if (!all_take(user.output(), Tensor::meta_strided(sizes, strides, strided.dtype()))) return false;
      } else {
        return false;
      }
    }
    return true;
  }

  // Updates the strides of views.
  static void refresh(GraphValue* value) {
    for (const GraphValue::Use& use : value->uses()) {
      if (use.block || !is_any_of(use.node, {"aten::view", "aten::reshape", "aten::transpose.int"})) continue;
      ViewBuilder::set_known(use.node);
      refresh(use.node->output());
    }
  }

  PassContext& context_;
  AliasAnalysis alias_;
};

}  // namespace

bool remove_transposes(Graph& graph, PassContext& context) { return TransposeRemover(graph, context).run(graph); }

}  // namespace tensord::jit
