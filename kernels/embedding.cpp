// embedding: rows of a table, by index.
#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "core/tensor/strided_copy.h"
#include "kernels/view.h"

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

// A table whose rows are dense, and where they go; sizes in bytes.
struct Rows {
  int64_t table_rows, row_bytes, row_stride;
};

// Rows lie anywhere in a table larger than the caches: their loads are started ahead.
constexpr int64_t kAhead = 8, kMostPrefetched = 512;

template <class I>
void copy_rows(const Rows& rows, const char* table, const I* indices, int64_t count, char* out) {
  parallel_for_cost(count, 6 + 0.05 * static_cast<double>(rows.row_bytes), [&](int64_t begin, int64_t end) {
    const auto is_in_range = [&](I index) { return index >= 0 && index < rows.table_rows; };
    for (int64_t i = begin; i < end; ++i) {
      if (i + kAhead < end && is_in_range(indices[i + kAhead])) {
        const char* next = table + indices[i + kAhead] * rows.row_stride;
        for (int64_t at = 0; at < std::min(rows.row_bytes, kMostPrefetched); at += 64) __builtin_prefetch(next + at);
      }
      if (!is_in_range(indices[i])) [[unlikely]]
        fail(ErrorCode::kOutOfRange, "index out of range in self");
      std::memcpy(out + i * rows.row_bytes, table + indices[i] * rows.row_stride, static_cast<size_t>(rows.row_bytes));
    }
  });
}

void copy_rows(const Rows& rows, const void* table, DType index, const void* indices, int64_t count, void* out) {
  if (index == DType::kInt64)
    copy_rows(rows, static_cast<const char*>(table), static_cast<const int64_t*>(indices), count,
              static_cast<char*>(out));
  else
    copy_rows(rows, static_cast<const char*>(table), static_cast<const int32_t*>(indices), count,
              static_cast<char*>(out));
}

bool has_dense_rows(const Tensor& table) { return table.strides()[1] == 1 || table.sizes()[1] == 1; }

Rows rows_of(const Tensor& table) {
  const auto size = static_cast<int64_t>(size_of(table.dtype()));
  return {table.sizes()[0], table.sizes()[1] * size, table.strides()[0] * size};
}

void embedding_kernel(const KernelContext&, const Tensor& table, const Tensor& indices, int64_t, bool, bool,
                      Tensor& out) {
  const Tensor rows = has_dense_rows(table) ? table : table.contiguous(), order = indices.contiguous();
  const Tensor dense = out.is_contiguous() ? out : Tensor::empty(out.sizes(), out.dtype());
  copy_rows(rows_of(rows), rows.raw_data(), order.dtype(), order.raw_data(), order.numel(), dense.raw_data());
  if (!dense.is_same(out)) strided_copy(out, dense);
}

class PreparedEmbedding final : public ops::PreparedCall {
 public:
  PreparedEmbedding(const Tensor& table, const Tensor& indices)
      : rows_(rows_of(table)),
        table_(table.is_meta() ? Tensor() : table),
        indices_(indices.is_meta() ? Tensor() : indices),
        index_(indices.dtype()),
        count_(indices.numel()) {
    cost.bytes = 2.0 * static_cast<double>(count_ * rows_.row_bytes);
  }

  void run(const ops::KernelContext&, const ops::PreparedRun& run) const override {
    const void* const* next = run.inputs;
    const void* table = table_ ? table_.raw_data() : *next++;
    const void* indices = indices_ ? indices_.raw_data() : *next;
    copy_rows(rows_, table, index_, indices, count_, run.outputs[0]);
  }

 private:
  Rows rows_;
  Tensor table_, indices_;  // where constant
  DType index_;
  int64_t count_;
};

std::unique_ptr<ops::PreparedCall> prepare_embedding(const ops::PrepareArgs& args) {
  const Tensor &table = args.arguments[0].to_tensor(), &indices = args.arguments[1].to_tensor();
  if (!has_dense_rows(table) || !indices.is_contiguous() || !args.outputs[0].is_contiguous()) return nullptr;
  return std::make_unique<PreparedEmbedding>(table, indices);
}

// Rows that were asked for and have a larger norm are scaled down to it.
Tensor embedding_renorm(const Tensor& table, const Tensor& indices, double max_norm, double norm_type) {
  check(table.ndim() == 2 && is_floating(table.dtype()), "embedding_renorm_ expects a table of floating point numbers");
  check(indices.dtype() == DType::kInt64 || indices.dtype() == DType::kInt32,
        "embedding_renorm_ expects indices of dtype int32 or int64");
  if (table.is_meta() || indices.is_meta()) return table;
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
    .infer(embedding_meta);
KERNEL("aten::embedding", kCPU, embedding_kernel);
PREPARE("aten::embedding", kCPU, prepare_embedding);
OP("aten::embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)")
    .direct(embedding_renorm);

}  // namespace
}  // namespace tensord::kernels
