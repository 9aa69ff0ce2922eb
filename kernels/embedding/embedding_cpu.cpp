// On the CPU: rows of a table by index, sums into these rows, and their norms.
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/execution_context.h"
#include "core/base/parallel.h"
#include "core/ops/attributes/written.h"
#include "core/ops/op.h"
#include "core/tensor/strided_copy.h"
#include "kernels/index/gather_rows.h"
#include "kernels/view/view.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;

void embedding_kernel(const KernelContext&, const Tensor& table, const Tensor& indices, int64_t, bool, bool,
                      Tensor& out) {
  const Tensor rows = RowGather::rows_are_dense(table, 0) ? table : table.contiguous(), order = indices.contiguous();
  const Tensor dense = out.is_contiguous() ? out : Tensor::empty(out.sizes(), out.dtype());
  RowGather::of(rows, 0, order.numel()).run(rows.raw_data(), order.dtype(), order.raw_data(), dense.raw_data());
  if (!dense.is_same(out)) strided_copy(out, dense);
}

// --- the gradient of embedding: adds each row to the row of the table that it was read from

// How often each row was read.
std::vector<int64_t> counts_of(std::span<const int64_t> indices, int64_t rows) {
  std::vector<int64_t> counts(static_cast<size_t>(rows));
  for (const int64_t i : indices) ++counts[static_cast<size_t>(i)];
  return counts;
}

// Each thread owns some rows of the table and adds to them in the order of the indices, so that sums do not depend on
// the number of threads.
template <class T>
void add_rows(std::span<const int64_t> indices, const T* from, int64_t padding, bool scales, const Tensor& out) {
  const int64_t rows = out.sizes()[0], width = out.sizes()[1];
  const std::vector<int64_t> counts = scales ? counts_of(indices, rows) : std::vector<int64_t>();
  T* table = out.data<T>();
  const double work = static_cast<double>(rows + static_cast<int64_t>(indices.size())) * static_cast<double>(width);
  // Each thread reads all indices, so more parts than threads would cost more.
  const ContextPart<&ExecutionContext::cancellation> whole(nullptr);
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

// --- index_select

// A 0-d tensor counts as one row.
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

// --- embedding and index_select for known shapes

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

std::unique_ptr<ops::PreparedCall> prepare_gather(const Tensor& table, int64_t dim, const Tensor& indices,
                                                  const Tensor& out) {
  if (!RowGather::rows_are_dense(table, dim) || !indices.is_contiguous() || !out.is_contiguous()) return nullptr;
  return std::make_unique<PreparedGather>(table, dim, indices);
}

// Rows that were read and whose norm is above the bound are scaled down to it.
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

IMPL("aten::embedding", kCPU, embedding_kernel);
PREPARE("aten::embedding", kCPU, [](const ops::PrepareArgs& args) {
  return prepare_gather(args.arguments[0].to_tensor(), 0, args.arguments[1].to_tensor(), args.outputs[0]);
});
IMPL("aten::embedding_dense_backward", kCPU, embedding_backward_kernel);
IMPL("aten::index_select", kCPU, index_select_kernel);
PREPARE("aten::index_select", kCPU, [](const ops::PrepareArgs& args) -> std::unique_ptr<ops::PreparedCall> {
  const Tensor& x = args.arguments[0].to_tensor();
  if (x.ndim() == 0) return nullptr;
  return prepare_gather(x, wrap_dim(args.arguments[1].to_int(), x.ndim()), args.arguments[2].to_tensor(),
                        args.outputs[0]);
});
IMPL("aten::embedding_renorm_", kCPU, embedding_renorm);

}  // namespace
}  // namespace tensord::kernels
