#include "core/ops/op.h"
#include "core/ops/run.h"
#include "ops/view.h"

// Views as copies, for functionalized graphs, whose tensors share no memory. Row-major, as in PyTorch.
namespace tensord::kernels {
namespace {

using ops::Value;

Value copied(const Value& view) {
  if (view.is_tensor()) return ops::clone(view.to_tensor(), {.memory_format = MemoryFormat::kContiguous});
  std::vector<Value> items;
  for (const Value& item : view.to_list()->items) items.push_back(copied(item));
  return ops::make_list(view.to_list()->element, std::move(items));
}

#define VIEW_COPY(NAME, VIEW)                                                      \
  OP(NAME)                                                                         \
      .impl([](std::span<const Value> arguments) {                                 \
        static const ops::Op& view = ops::get_op(VIEW);                            \
        return copied(ops::run(view, {arguments.begin(), arguments.end()}).at(0)); \
      })                                                                           \
      .composite()

VIEW_COPY("aten::alias_copy", "aten::alias");
VIEW_COPY("aten::as_strided_copy", "aten::as_strided");
VIEW_COPY("aten::diagonal_copy", "aten::diagonal");
VIEW_COPY("aten::expand_copy", "aten::expand");
VIEW_COPY("aten::permute_copy", "aten::permute");
VIEW_COPY("aten::select_copy.int", "aten::select.int");
VIEW_COPY("aten::slice_copy.Tensor", "aten::slice.Tensor");
VIEW_COPY("aten::split_copy.Tensor", "aten::split.Tensor");
VIEW_COPY("aten::split_with_sizes_copy", "aten::split_with_sizes");
VIEW_COPY("aten::squeeze_copy", "aten::squeeze");
VIEW_COPY("aten::squeeze_copy.dim", "aten::squeeze.dim");
VIEW_COPY("aten::squeeze_copy.dims", "aten::squeeze.dims");
VIEW_COPY("aten::t_copy", "aten::t");
VIEW_COPY("aten::transpose_copy.int", "aten::transpose.int");
VIEW_COPY("aten::unbind_copy.int", "aten::unbind.int");
VIEW_COPY("aten::unfold_copy", "aten::unfold");
VIEW_COPY("aten::unsqueeze_copy", "aten::unsqueeze");
VIEW_COPY("aten::view_as_complex_copy", "aten::view_as_complex");
// Also takes tensors with gaps between their elements.
VIEW_COPY("aten::view_copy", "aten::reshape");
VIEW_COPY("aten::view_copy.dtype", "aten::view.dtype");

}  // namespace
}  // namespace tensord::kernels
