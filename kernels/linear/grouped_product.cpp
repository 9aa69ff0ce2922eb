// _grouped_mm: one matrix product for each group (the experts of a mixture). Groups are given by their ends.
#include "kernels/base/numbers.h"
#include "kernels/expr/compose.h"
#include "ops/factory.h"
#include "ops/linear.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using MaybeTensor = std::optional<Tensor>;

// The ends of groups along a dimension of `size`: ascending, none beyond it.
std::vector<int64_t> group_ends(const Tensor& offsets, int64_t size) {
  std::vector<int64_t> ends = integers_of(offsets);
  int64_t before = 0;
  for (const int64_t end : ends) {
    check(end >= before && end <= size, "_grouped_mm: offsets must grow from 0 to at most ", size, ", but got ", end,
          " after ", before);
    before = end;
  }
  return ends;
}

Tensor part(const Tensor& x, int64_t dim, int64_t begin, int64_t end) {
  return ops::narrow(x, dim, begin, end - begin);
}

// The groups' products one after another along `dim`; zero where there is no group.
Tensor joined(std::vector<Tensor> products, int64_t dim, const Dims& sizes, const Tensor& like) {
  int64_t filled = 0;
  for (const Tensor& product : products) filled += product.size(dim);
  Dims rest = sizes;
  rest[dim] -= filled;
  if (rest[dim] > 0 || products.empty()) {
    products.push_back(ops::zeros(rest, {.dtype = like.dtype(), .device = like.device()}));
  }
  return ops::cat(products, dim);
}

Tensor grouped_mm(const Tensor& a, const Tensor& b, const MaybeTensor& offsets, const MaybeTensor& bias,
                  std::optional<DType> out_dtype) {
  check((a.ndim() == 2 || a.ndim() == 3) && (b.ndim() == 2 || b.ndim() == 3),
        "_grouped_mm: expected matrices of 2 or 3 dimensions, but got ", a.ndim(), " and ", b.ndim());
  check(a.size(-1) == b.size(-2), "_grouped_mm: contraction dimension of the matrices must match, but got ", a.size(-1),
        " and ", b.size(-2));
  check(!bias, "_grouped_mm: bias is not supported");
  check(!out_dtype || *out_dtype == a.dtype(), "_grouped_mm: out_dtype must be that of the matrices");
  if (a.ndim() == 3 && b.ndim() == 3) {
    check(!offsets, "_grouped_mm: two batches of matrices take no offsets");
    return ops::bmm(a, b);
  }
  check(offsets && offsets->ndim() == 1 && is_integral(offsets->dtype(), false),
        "_grouped_mm: expected a vector of offsets where a matrix has 2 dimensions");
  const int64_t groups = offsets->numel();
  const Tensor* const batch = a.ndim() == 3 ? &a : b.ndim() == 3 ? &b : nullptr;
  check(batch == nullptr || batch->size(0) == groups,
        "_grouped_mm: expected an offset for each matrix of the batch, but got ", groups);
  const Dims sizes = batch == nullptr ? Dims{groups, a.size(0), b.size(1)} : Dims{a.size(-2), b.size(-1)};
  if (a.is_meta() || offsets->is_meta()) return Tensor::meta(sizes, a.dtype(), a.device());
  const int64_t grouped = batch == nullptr ? a.size(1) : batch == &b ? a.size(0) : b.size(1);
  std::vector<Tensor> products;
  int64_t begin = 0, group = 0;
  for (const int64_t end : group_ends(*offsets, grouped)) {
    if (batch == nullptr) {
      products.push_back(ops::mm(part(a, 1, begin, end), part(b, 0, begin, end)));
    } else if (batch == &b) {
      products.push_back(ops::mm(part(a, 0, begin, end), ops::select(b, 0, group)));
    } else {
      products.push_back(ops::mm(ops::select(a, 0, group), part(b, 1, begin, end)));
    }
    begin = end;
    ++group;
  }
  if (batch == nullptr)
    return products.empty() ? ops::zeros(sizes, {.dtype = a.dtype(), .device = a.device()})
                            : ops::stack(products, int64_t{0});
  return joined(std::move(products), batch == &b ? 0 : 1, sizes, a);
}
OP("aten::_grouped_mm").impl(grouped_mm).composite();

}  // namespace
}  // namespace tensord::kernels
