// A copy of a tensor with one of its views replaced: select_scatter and others like it. Also elements by flat index:
// put, take_along_dim.
#include <array>

#include "core/ops/attributes/written.h"
#include "kernels/expr/compose.h"
#include "ops/index.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::WritesInto;

// A copy of `self` in which the part that `view` selects is `src`.
template <class View>
Tensor replaced(const Tensor& self, const Tensor& src, View view, const char* name) {
  const Tensor out = ops::clone(self);
  const Tensor part = view(out);
  check(part.sizes() == src.sizes(), name,
        ": expected src to have a size equal to the slice of self. src size = ", src.sizes(),
        ", slice size = ", part.sizes());
  ops::copy_(part, src);
  return out;
}

OP("aten::select_scatter")
    .impl([](const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
      return replaced(
          self, src, [&](const Tensor& x) { return ops::select(x, dim, index); }, "select_scatter");
    })
    .composite();
OP("aten::slice_scatter")
    .impl([](const Tensor& self, const Tensor& src, int64_t dim, std::optional<int64_t> start,
             std::optional<int64_t> end, int64_t step) {
      return replaced(
          self, src, [&](const Tensor& x) { return ops::slice(x, dim, start, end, step); }, "slice_scatter");
    })
    .composite();
OP("aten::diagonal_scatter")
    .impl([](const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) {
      return replaced(
          self, src, [&](const Tensor& x) { return ops::diagonal(x, offset, dim1, dim2); }, "diagonal_scatter");
    })
    .composite();

OP("aten::as_strided_scatter")
    .impl([](const Tensor& self, const Tensor& src, const ops::IntList& size, const ops::IntList& stride,
             std::optional<int64_t> offset) {
      check(offset.value_or(0) >= 0, "as_strided_scatter: storage_offset must not be negative");
      const auto view = [&](const Tensor& x) { return ops::as_strided(x, size, stride, offset.value_or(0)); };
      return replaced(ops::contiguous(self), src, view, "as_strided_scatter");
    })
    .composite();

Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  check(indices.dtype() == DType::kInt64, "torch.take_along_dim(): dtype of indices should be Long but got ",
        name_of(indices.dtype()));
  if (!dim) {
    return ops::gather(ops::reshape(self, Dims{-1}), int64_t{0}, ops::reshape(indices, Dims{-1}));
  }
  check(self.ndim() == indices.ndim(),
        "torch.take_along_dim(): input and indices should have the same number of dimensions, but got ", self.ndim(),
        " dimensions for input, and ", indices.ndim(), " dimensions for indices");
  const int64_t at = wrap_dim(*dim, self.ndim());
  // Broadcasts the tensors against each other in all dimensions but `dim`.
  Dims left = self.sizes(), right = indices.sizes();
  if (self.ndim() > 0) {
    left[at] = indices.sizes()[at];
    right[at] = self.sizes()[at];
  }
  const Tensor from = ops::expand(self, broadcast_sizes(self.sizes(), right));
  return ops::gather(from, at, ops::expand(indices, broadcast_sizes(left, indices.sizes())));
}
OP("aten::take_along_dim")
    .impl(take_along_dim)
    .composite()
    .set<WritesInto>(WritesInto::kSameDType, WritesInto::kSharesNothing);

void check_put(const Tensor& self, const Tensor& index, const Tensor& source) {
  check(index.dtype() == DType::kInt64, "put_(): Expected a long tensor for index, but got ", name_of(index.dtype()));
  check(self.dtype() == source.dtype(),
        "put_(): self and source expected to have the same dtype, but got self.dtype = ", name_of(self.dtype()),
        " and source.dtype = ", name_of(source.dtype()));
  check(index.numel() == source.numel(),
        "put_(): Expected source and index to have the same number of elements, but got source.numel() = ",
        source.numel(), ", index.numel() = ", index.numel());
  check(self.numel() > 0 || index.numel() == 0, "put_(): Expected self to be non-empty");
}

// Flat indices as one index for each dimension. An index that is out of range is so in the first dimension.
std::vector<Tensor> unravelled(const Tensor& flat, const Dims& sizes, int64_t numel) {
  const Tensor wrapped = ops::add(flat, ops::mul(compose::to(ops::lt(flat, 0), DType::kInt64), numel));
  Tensor rest = ops::masked_fill(wrapped, ops::lt(wrapped, 0), numel);
  std::vector<Tensor> indices(sizes.size());
  for (size_t d = sizes.size(); d-- > 1;) {
    indices[d] = ops::remainder(rest, sizes[d]);
    rest = ops::floor_divide(rest, sizes[d]);
  }
  indices[0] = rest;
  return indices;
}

OP("aten::put")
    .impl([](const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
      check_put(self, index, source);
      const ops::Op& op = ops::get_op("aten::index_put");
      const ops::Value list = ops::make_tensor_list({ops::reshape(index, Dims{-1})});
      const Tensor flat =
          ops::run(op,
                   ops::bind(op, {ops::reshape(self, Dims{-1}), list, ops::reshape(source, Dims{-1}), accumulate}))[0]
              .to_tensor();
      return ops::reshape(flat, self.sizes());
    })
    .composite()
    .set<WritesInto>(WritesInto::kAnyDType, WritesInto::kSharesNothing);
OP("aten::put_")
    .impl([](const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
      check_put(self, index, source);
      ops::check_no_internal_overlap(self);
      ops::check_apart(ops::get_op("aten::put"), self, std::array<ops::Value, 2>{index, source});
      if (index.numel() == 0) return self;
      const bool is_flat = self.is_contiguous();
      const Tensor target = is_flat ? ops::view(self, Dims{-1}) : self, at = ops::reshape(index, Dims{-1});
      const std::vector<Tensor> indices = is_flat ? std::vector{at} : unravelled(at, self.sizes(), self.numel());
      const ops::Op& op = ops::get_op("aten::index_put_");
      ops::run(op, ops::bind(op, {target, ops::make_tensor_list(indices), ops::reshape(source, Dims{-1}), accumulate}));
      return self;
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels
