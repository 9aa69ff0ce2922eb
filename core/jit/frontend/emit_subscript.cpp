// Subscripts with slices in hand-written code. Archives call torch.slice and torch.select.
#include <algorithm>

#include "core/jit/frontend/function_emitter.h"

namespace tensord::jit {

using ops::TypeKind;

bool FunctionEmitter::has_slice(const Expr& index) {
  return index.kind == ExprKind::kSlice ||
         (index.kind == ExprKind::kTuple &&
          std::ranges::any_of(index.items, [](const Expr* item) { return item->kind == ExprKind::kSlice; }));
}

// Start, end and step of a slice.
FunctionEmitter::Values FunctionEmitter::slice_bounds(const Expr& slice) {
  Values bounds;
  for (size_t i = 0; i < 3; ++i) {
    if (slice.items[i]) {
      bounds.push_back(value(*slice.items[i]));
    } else {
      bounds.push_back(i < 2 ? none() : constant(int64_t{1}));
    }
  }
  return bounds;
}

GraphValue* FunctionEmitter::sliced(GraphValue* base, const Expr& index, const Expr& at) {
  if (base->type()->kind() != TypeKind::kTensor) {
    if (index.kind != ExprKind::kSlice) fail(index, "a value of type " + base->type()->str() + " has one dimension");
    Values arguments{base};
    for (GraphValue* bound : slice_bounds(index)) arguments.push_back(bound);
    return as_value(call_operator("aten::slice", {arguments, {}}, at), at);
  }
  // Each item indexes one dimension; a number removes its dimension.
  int64_t dim = 0;
  const Expr* const single = &index;
  const std::span<const Expr* const> items = index.kind == ExprKind::kTuple ? std::span<const Expr* const>(index.items)
                                                                            : std::span<const Expr* const>(&single, 1);
  for (const Expr* item : items) {
    Values arguments{base, constant(dim)};
    if (item->kind == ExprKind::kSlice) {
      for (GraphValue* bound : slice_bounds(*item)) arguments.push_back(bound);
      base = as_value(call_operator("aten::slice", {arguments, {}}, at), at);
      ++dim;
    } else {
      arguments.push_back(value(*item));
      if (arguments.back()->type()->kind() != TypeKind::kInt)
        fail(*item, "only slices and numbers can stand side by side");
      base = as_value(call_operator("aten::select", {arguments, {}}, at), at);
    }
  }
  return base;
}

}  // namespace tensord::jit
