// embedding and index_select: rows of a table, by index.
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "core/ops/samples.h"
#include "core/ops/sparse.h"
#include "core/ops/written.h"
#include "core/tensor/strided_copy.h"
#include "kernels/fused/gradient_expr.h"
#include "kernels/index/gather_rows.h"
#include "kernels/view/view.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::TensorMeta;

TensorMeta embedding_meta(const Tensor& table, const Tensor& indices, int64_t, bool, bool) {
  check(table.ndim() == 2, "'weight' must be 2-D");
  check(indices.dtype() == DType::kInt64 || indices.dtype() == DType::kInt32,
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got ",
        name_of(indices.dtype()), " instead (while checking arguments for embedding)");
  Dims sizes = indices.sizes();
  sizes.push_back(table.sizes()[1]);
  return {std::move(sizes), table.dtype(), {}, table.device()};
}

void embedding_kernel(const KernelContext&, const Tensor& table, const Tensor& indices, int64_t, bool, bool,
                      Tensor& out) {
  const Tensor rows = RowGather::rows_are_dense(table, 0) ? table : table.contiguous(), order = indices.contiguous();
  const Tensor dense = out.is_contiguous() ? out : Tensor::empty(out.sizes(), out.dtype());
  RowGather::of(rows, 0, order.numel()).run(rows.raw_data(), order.dtype(), order.raw_data(), dense.raw_data());
  if (!dense.is_same(out)) strided_copy(out, dense);
}

// --- its gradient: rows are added to where they came from

TensorMeta embedding_backward_meta(const Tensor& grad, const Tensor& indices, int64_t rows, int64_t, bool) {
  check(indices.dtype() == DType::kInt64 || indices.dtype() == DType::kInt32,
        "embedding_dense_backward: expected indices of dtype int32 or int64, but got ", name_of(indices.dtype()));
  Dims sizes = indices.sizes();
  check(grad.ndim() >= 1 && rows >= 0, "embedding_dense_backward: expected rows of gradients");
  sizes.push_back(grad.sizes().back());
  check(grad.sizes() == sizes, "embedding_dense_backward: expected a gradient of shape ", to_string(sizes),
        ", but got ", grad.sizes());
  return {Dims{rows, sizes.back()}, grad.dtype(), {}, grad.device()};
}

// How often each row is asked for.
std::vector<int64_t> counts_of(std::span<const int64_t> indices, int64_t rows) {
  std::vector<int64_t> counts(static_cast<size_t>(rows));
  for (const int64_t i : indices) ++counts[static_cast<size_t>(i)];
  return counts;
}

// Each thread has rows of the table and adds to them in the order of the indices, so that sums do not depend on
// the number of threads.
template <class T>
void add_rows(std::span<const int64_t> indices, const T* from, int64_t padding, bool scales, const Tensor& out) {
  const int64_t rows = out.sizes()[0], width = out.sizes()[1];
  const std::vector<int64_t> counts = scales ? counts_of(indices, rows) : std::vector<int64_t>();
  T* table = out.data<T>();
  const double work = static_cast<double>(rows + static_cast<int64_t>(indices.size())) * static_cast<double>(width);
  parallel_for_cost(rows, 0.2 * work / static_cast<double>(std::max<int64_t>(rows, 1)),
                    [&](int64_t begin, int64_t end) {
                      std::fill(table + begin * width, table + end * width, T(0));
                      for (size_t i = 0; i < indices.size(); ++i) {
                        const int64_t row = indices[i];
                        if (row < begin || row >= end || row == padding) continue;
                        const T factor = scales ? T(1) / static_cast<T>(counts[static_cast<size_t>(row)]) : T(1);
                        T* to = table + row * width;
                        const T* source = from + static_cast<int64_t>(i) * width;
                        for (int64_t k = 0; k < width; ++k) to[k] += factor * source[k];
                      }
                    });
}

void embedding_backward_kernel(const KernelContext&, const Tensor& grad, const Tensor& indices, int64_t rows,
                               int64_t padding, bool scales, Tensor& out) {
  const Tensor order = indices.to(DType::kInt64).contiguous();
  const std::span<const int64_t> all(order.data<int64_t>(), static_cast<size_t>(order.numel()));
  for (const int64_t i : all) {
    if (i < 0 || i >= rows) fail(ErrorCode::kOutOfRange, "embedding_dense_backward: index ", i, " is out of range");
  }
  const DType dtype = grad.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const Tensor dense = grad.to(dtype).contiguous();
  const bool fits = out.dtype() == dtype && out.is_contiguous();
  const Tensor table = fits ? out : Tensor::empty(out.sizes(), dtype);
  if (dtype == DType::kFloat64)
    add_rows<double>(all, dense.data<double>(), padding, scales, table);
  else
    add_rows<float>(all, dense.data<float>(), padding, scales, table);
  if (!fits) strided_copy(out, table.to(out.dtype()));
}

std::vector<Tensor> gradient_of_embedding(const ops::GradArgs& args) {
  const auto& in = args.inputs;
  std::vector<Tensor> out(5);
  if (!args.needs(0)) return out;
  if (in[4].to_bool())
    out[0] = ops::to_tensor(ops::call<ops::Value>("aten::embedding_sparse_backward", args.grad_outputs[0], in[1],
                                                  in[0].to_tensor().sizes()[0], in[2], in[3]));
  else
    out[0] = ops::call("aten::embedding_dense_backward", args.grad_outputs[0], in[1], in[0].to_tensor().sizes()[0],
                       in[2], in[3]);
  return out;
}

// Rows of what is asked of the table's gradient; none for padding.
std::vector<Tensor> gradient_of_embedding_backward(const ops::GradArgs& args) {
  using gradient::Expr;
  const auto& in = args.inputs;
  const Tensor &g = args.grad_outputs[0], &indices = in[1].to_tensor();
  std::vector<Tensor> out(5);
  if (!args.needs(0)) return out;
  Expr rows = ops::call("aten::embedding", g, indices, int64_t{-1}, false, false);
  const int64_t padding = in[3].to_int();
  Dims column = indices.sizes();
  column.push_back(1);
  if (padding >= 0) {
    const Tensor kept = ops::call("aten::ne.Scalar", indices, ops::Scalar(padding));
    rows = rows * Expr(ops::call("aten::to.dtype", ops::call("aten::reshape", kept, column), g.dtype()));
  }
  if (in[4].to_bool()) {
    const Tensor ones = ops::call("aten::ones", column, g.dtype(), ops::Value(), g.device());
    const Tensor counts = ops::call("aten::embedding_dense_backward", ones, indices, in[2], int64_t{-1}, false);
    rows = rows / Expr(ops::call("aten::embedding", counts, indices, int64_t{-1}, false, false));
  }
  out[0] = rows.tensor();
  return out;
}

// --- index_select

TensorMeta index_select_meta(const Tensor& x, int64_t dim, const Tensor& index) {
  dim = wrap_dim(dim, x.ndim());
  check(index.ndim() <= 1, "index_select(): Index is supposed to be a vector, but got dim: ", index.ndim());
  check(index.dtype() == DType::kInt64 || index.dtype() == DType::kInt32,
        "index_select(): Expected dtype int32 or int64 for index");
  Dims sizes = x.sizes();
  if (!sizes.empty()) sizes[dim] = index.numel();
  return {std::move(sizes), x.dtype(), {}, x.device()};
}

// A 0-d tensor is a row of its own.
Tensor as_rows(const Tensor& x) { return x.ndim() > 0 ? x : x.as_view({1}, {1}, x.offset()); }

void index_select_kernel(const KernelContext&, const Tensor& x, int64_t dim, const Tensor& index, Tensor& out) {
  Tensor rows = as_rows(x);
  dim = wrap_dim(dim, rows.ndim());
  if (!RowGather::rows_are_dense(rows, dim)) rows = rows.contiguous();
  const Tensor order = index.contiguous();
  const Tensor dense = out.is_contiguous() ? out : Tensor::empty(out.sizes(), out.dtype());
  RowGather::of(rows, dim, order.numel()).run(rows.raw_data(), order.dtype(), order.raw_data(), dense.raw_data());
  if (!dense.is_same(out)) strided_copy(out, dense);
}

std::vector<Tensor> gradient_of_index_select(const ops::GradArgs& args) {
  const auto& in = args.inputs;
  if (!args.needs(0)) return std::vector<Tensor>(3);
  return {ops::call("aten::index_add", gradient::zeros_like(in[0]), in[1], in[2], args.grad_outputs[0]), Tensor(),
          Tensor()};
}

// --- both, for known shapes

class PreparedGather final : public ops::PreparedCall {
 public:
  PreparedGather(const Tensor& table, int64_t dim, const Tensor& indices)
      : gather_(RowGather::of(table, dim, indices.numel())),
        table_(table.is_meta() ? Tensor() : table),
        indices_(indices.is_meta() ? Tensor() : indices),
        index_(indices.dtype()) {
    cost.bytes = 2.0 * static_cast<double>(gather_.outer * gather_.count * gather_.row_bytes);
  }

  void run(const ops::KernelContext&, const ops::PreparedRun& run) const override {
    const void* const* next = run.inputs;
    const void* table = table_ ? table_.raw_data() : *next++;
    gather_.run(table, index_, indices_ ? indices_.raw_data() : *next, run.outputs[0]);
  }

 private:
  RowGather gather_;
  Tensor table_, indices_;  // where constant
  DType index_;
};

std::unique_ptr<ops::PreparedCall> prepare(const Tensor& table, int64_t dim, const Tensor& indices, const Tensor& out) {
  if (!RowGather::rows_are_dense(table, dim) || !indices.is_contiguous() || !out.is_contiguous()) return nullptr;
  return std::make_unique<PreparedGather>(table, dim, indices);
}

// Rows that were asked for and have a larger norm are scaled down to it.
Tensor embedding_renorm(const Tensor& table, const Tensor& indices, double max_norm, double norm_type) {
  check(table.ndim() == 2 && is_floating(table.dtype()), "embedding_renorm_ expects a table of floating point numbers");
  check(indices.dtype() == DType::kInt64 || indices.dtype() == DType::kInt32,
        "embedding_renorm_ expects indices of dtype int32 or int64");
  if (table.is_meta() || indices.is_meta()) return table;
  ops::check_no_internal_overlap(table);
  const Tensor wide = indices.to(DType::kInt64).contiguous();
  std::vector<int64_t> rows(wide.data<int64_t>(), wide.data<int64_t>() + wide.numel());
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  for (const int64_t i : rows) {
    if (i < 0 || i >= table.sizes()[0]) fail(ErrorCode::kOutOfRange, "index out of range in self");
    const Tensor row = select(table, 0, i), values = row.to(DType::kFloat64).contiguous();
    const std::span<double> v(values.data<double>(), static_cast<size_t>(values.numel()));
    double norm = 0;
    for (const double x : v)
      norm = std::isinf(norm_type) ? std::max(norm, std::abs(x)) : norm + std::pow(std::abs(x), norm_type);
    if (!std::isinf(norm_type)) norm = std::pow(norm, 1 / norm_type);
    if (!(norm > max_norm)) continue;
    for (double& x : v) x *= max_norm / (norm + 1e-7);
    row.copy_from(values);
  }
  return table;
}

OP("aten::embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool "
   "sparse=False) -> Tensor")
    .set<ops::KeepsSamples>([](std::span<const ops::Value> v) { return ops::is_constant_tensor(v[0]); })
    .infer(embedding_meta)
    .gradient(gradient_of_embedding)
    .saves("indices");
KERNEL("aten::embedding", kCPU, embedding_kernel);
PREPARE("aten::embedding", kCPU, [](const ops::PrepareArgs& args) {
  return prepare(args.arguments[0].to_tensor(), 0, args.arguments[1].to_tensor(), args.outputs[0]);
});
OP("aten::embedding_dense_backward(Tensor grad_output, Tensor indices, int num_weights, int padding_idx, bool "
   "scale_grad_by_freq) -> Tensor")
    .infer(embedding_backward_meta)
    .gradient(gradient_of_embedding_backward)
    .saves("indices");
KERNEL("aten::embedding_dense_backward", kCPU, embedding_backward_kernel);
OP("aten::index_select(Tensor self, int dim, Tensor index) -> Tensor")
    .infer(index_select_meta)
    .gradient(gradient_of_index_select)
    .saves("index")
    .with_out();
KERNEL("aten::index_select", kCPU, index_select_kernel);
PREPARE("aten::index_select", kCPU, [](const ops::PrepareArgs& args) -> std::unique_ptr<ops::PreparedCall> {
  const Tensor& x = args.arguments[0].to_tensor();
  if (x.ndim() == 0) return nullptr;
  return prepare(x, wrap_dim(args.arguments[1].to_int(), x.ndim()), args.arguments[2].to_tensor(), args.outputs[0]);
});
OP("aten::embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)")
    .direct(embedding_renorm);

}  // namespace
}  // namespace tensord::kernels
