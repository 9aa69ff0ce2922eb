// Splits and stacks by axis name, and combinatorial products: column_stack, cartesian_prod, combinations.
#include "core/ops/attributes/written.h"
#include "kernels/base/numbers.h"
#include "kernels/expr/compose.h"
#include "kernels/view/view.h"
#include "ops/embedding.h"
#include "ops/factory.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::WritesInto;
using TensorList = std::vector<Tensor>;

TensorList split_at(const Tensor& x, const ops::Value& where, int64_t dim) {
  const ops::Op& op = ops::get_op(where.is_int() ? "aten::tensor_split.sections" : "aten::tensor_split.indices");
  return ops::Unbox<TensorList>::get(ops::run(op, ops::bind(op, {x, where, dim}))[0]);
}

// hsplit, vsplit and dsplit: tensor_split along the first, second or third dimension; sections must divide it.
void add_split(const char* name, int64_t min_ndim, int64_t (*dim_of)(const Tensor&)) {
  const std::string full = concat("aten::", name);
  const auto checked = [=](const Tensor& x) {
    check(x.ndim() >= min_ndim, "torch.", name, " requires a tensor with at least ", min_ndim,
          " dimension, but got a tensor with ", x.ndim(), " dimensions!");
    return dim_of(x);
  };
  ops::OpBuilder(concat(full, ".int"), __FILE__, __LINE__)
      .impl([=](const Tensor& x, int64_t sections) {
        const int64_t dim = checked(x);
        check(sections > 0 && x.size(dim) % sections == 0, "torch.", name, " attempted to split along dimension ", dim,
              ", but the size of the dimension ", x.size(dim), " is not divisible by the split_size ", sections, "!");
        return split_at(x, sections, dim);
      })
      .composite();
  ops::OpBuilder(concat(full, ".array"), __FILE__, __LINE__)
      .impl([=](const Tensor& x, const ops::IntList& indices) {
        return split_at(x, ops::make_int_list(indices), checked(x));
      })
      .composite();
}

Tensor column_stack(const TensorList& tensors) {
  check(!tensors.empty(), "column_stack expects a non-empty TensorList");
  TensorList columns;
  for (const Tensor& x : tensors) {
    columns.push_back(x.ndim() <= 1 ? ops::reshape(x, Dims{x.numel(), 1}) : x);
  }
  return ops::hstack(columns);
}
OP("aten::column_stack")
    .impl(column_stack)
    .composite()
    .set<WritesInto>(WritesInto::kAnyDType, WritesInto::kSharesNothing);

Tensor narrow_copy(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  return ops::clone(ops::narrow(x, dim, start, length), {.memory_format = MemoryFormat::kContiguous});
}
OP("aten::narrow_copy").impl(narrow_copy).composite();

OP("aten::diagflat")
    .impl([](const Tensor& x, int64_t offset) { return ops::diag(ops::reshape(x, Dims{-1}), offset); })
    .composite();

Tensor cartesian_prod(const TensorList& tensors) {
  for (const Tensor& x : tensors) check(x.ndim() == 1, "Expect a 1D vector, but got shape ", x.sizes());
  check(!tensors.empty(), "meshgrid expects a non-empty TensorList");
  if (tensors.size() == 1) return ops::clone(tensors[0]);
  const ops::Op& meshgrid = ops::get_op("aten::meshgrid");
  TensorList grids =
      ops::Unbox<TensorList>::get(ops::run(meshgrid, ops::bind(meshgrid, {ops::make_tensor_list(tensors)}))[0]);
  for (Tensor& grid : grids) grid = ops::flatten(grid, int64_t{0}, int64_t{-1});
  return ops::stack(grids, int64_t{1});
}
OP("aten::cartesian_prod").impl(cartesian_prod).composite();

// Index tuples in lexicographic order; `first` is the smallest index for the next place.
void add_tuples(int64_t count, int64_t r, bool with_replacement, Dims& tuple,
                std::vector<std::vector<int64_t>>& columns) {
  if (static_cast<int64_t>(tuple.size()) == r) {
    for (size_t i = 0; i < tuple.size(); ++i) columns[i].push_back(tuple[i]);
    return;
  }
  const int64_t first = tuple.empty() ? 0 : tuple[tuple.size() - 1] + (with_replacement ? 0 : 1);
  // Without replacement, the remaining places need indices behind this one.
  const int64_t missing = r - static_cast<int64_t>(tuple.size()) - 1, end = with_replacement ? count : count - missing;
  for (int64_t i = first; i < end; ++i) {
    tuple.push_back(i);
    add_tuples(count, r, with_replacement, tuple, columns);
    tuple.erase(tuple.size() - 1);
  }
}

Tensor combinations(const Tensor& x, int64_t r, bool with_replacement) {
  check(x.ndim() == 1, "Expect a 1D vector, but got shape ", x.sizes());
  check(r >= 0, "Expect a non-negative number, but got ", r);
  if (r == 0) return ops::new_empty(x, Dims{0});
  check(r <= static_cast<int64_t>(kMaxDims), "combinations: r must be at most ", kMaxDims, ", but got ", r);
  double rows = 1;  // n choose r, computed before allocating memory for it
  for (int64_t i = 0; i < r; ++i) {
    const auto n = static_cast<double>(x.numel() + (with_replacement ? r - 1 : 0));
    rows *= std::max(n - static_cast<double>(i), 0.0) / static_cast<double>(i + 1);
  }
  check(rows * static_cast<double>(r) < 1e9, "combinations: the result would have ", rows, " rows");
  std::vector<std::vector<int64_t>> columns(static_cast<size_t>(r));
  Dims tuple;
  add_tuples(x.numel(), r, with_replacement, tuple, columns);
  TensorList picked;
  for (const std::vector<int64_t>& column : columns) {
    picked.push_back(ops::index_select(x, int64_t{0}, vector_of(column).to(x.device())));
  }
  return ops::stack(picked, int64_t{1});
}
OP("aten::combinations").impl(combinations).composite();

[[maybe_unused]] const bool stacks_registered = [] {
  add_split("hsplit", 1, [](const Tensor& x) -> int64_t { return x.ndim() == 1 ? 0 : 1; });
  add_split("vsplit", 2, [](const Tensor&) -> int64_t { return 0; });
  add_split("dsplit", 3, [](const Tensor&) -> int64_t { return 2; });
  return true;
}();

}  // namespace
}  // namespace tensord::kernels
