#include "core/ops/op.h"
#include "core/ops/run.h"

// Views as copies: what graphs have that know no memory of others (functionalised ones). Row-major, as PyTorch's.
namespace tensord::kernels {
namespace {

using ops::call;
using ops::Value;

Value copied(const Value& view) {
  if (view.is_tensor()) return call("aten::clone", view, /*memory_format=*/int64_t{0});
  std::vector<Value> items;
  for (const Value& item : view.to_list()->items) items.push_back(copied(item));
  return ops::make_list(view.to_list()->element, std::move(items));
}

#define VIEW_COPY(SCHEMA, VIEW)                                                    \
  OP(SCHEMA)                                                                       \
      .impl([](std::span<const Value> arguments) {                                 \
        static const ops::Op& view = ops::get_op(VIEW);                            \
        return copied(ops::run(view, {arguments.begin(), arguments.end()}).at(0)); \
      })                                                                           \
      .composite()

VIEW_COPY("aten::alias_copy(Tensor self) -> Tensor", "aten::alias");
VIEW_COPY("aten::as_strided_copy(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
          "aten::as_strided");
VIEW_COPY("aten::diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", "aten::diagonal");
VIEW_COPY("aten::expand_copy(Tensor self, int[] size, *, bool implicit=False) -> Tensor", "aten::expand");
VIEW_COPY("aten::permute_copy(Tensor self, int[] dims) -> Tensor", "aten::permute");
VIEW_COPY("aten::select_copy.int(Tensor self, int dim, int index) -> Tensor", "aten::select.int");
VIEW_COPY("aten::slice_copy.Tensor(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
          "aten::slice.Tensor");
VIEW_COPY("aten::split_copy.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]", "aten::split.Tensor");
VIEW_COPY("aten::split_with_sizes_copy(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]",
          "aten::split_with_sizes");
VIEW_COPY("aten::squeeze_copy(Tensor self) -> Tensor", "aten::squeeze");
VIEW_COPY("aten::squeeze_copy.dim(Tensor self, int dim) -> Tensor", "aten::squeeze.dim");
VIEW_COPY("aten::squeeze_copy.dims(Tensor self, int[] dim) -> Tensor", "aten::squeeze.dims");
VIEW_COPY("aten::t_copy(Tensor self) -> Tensor", "aten::t");
VIEW_COPY("aten::transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor", "aten::transpose.int");
VIEW_COPY("aten::unbind_copy.int(Tensor self, int dim=0) -> Tensor[]", "aten::unbind.int");
VIEW_COPY("aten::unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor", "aten::unfold");
VIEW_COPY("aten::unsqueeze_copy(Tensor self, int dim) -> Tensor", "aten::unsqueeze");
// Of elements that lie apart, too.
VIEW_COPY("aten::view_copy(Tensor self, int[] size) -> Tensor", "aten::reshape");
VIEW_COPY("aten::view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor", "aten::view.dtype");

}  // namespace
}  // namespace tensord::kernels
