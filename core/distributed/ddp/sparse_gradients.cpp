#include "core/distributed/ddp/sparse_gradients.h"

#include <functional>
#include <numeric>
#include <vector>

#include "core/base/error.h"
#include "core/ops/run.h"
#include "core/tensor/grad_mode.h"
#include "ops/sparse.h"

namespace tensord::distributed {
namespace {

ops::SparsePtr coalesced(const ops::SparsePtr& sparse) {
  if (sparse->is_coalesced()) return sparse;
  const Tensor found = ops::coalesce(Tensor(sparse));
  return ops::as_sparse(found);
}

// `count` rows from `first` on.
Tensor rows_of(const Tensor& tensor, int64_t first, int64_t count) {
  Dims sizes = tensor.sizes();
  sizes[0] = count;
  const int64_t step = std::accumulate(sizes.begin() + 1, sizes.end(), int64_t{1}, std::multiplies<>());
  return tensor.as_view(sizes, contiguous_strides(sizes), first * step);
}

}  // namespace

void check_sparse_gradient(const std::string& name, const Tensor& gradient) {
  const ops::SparsePtr sparse = ops::as_sparse(gradient);
  check(static_cast<bool>(sparse), "DistributedDataParallel: the gradient of ", name,
        " is dense, but it was said to be sparse");
  check(sparse->is_coo() && sparse->sparse_dim() == 1, "DistributedDataParallel: the sparse gradient of ", name, " is ",
        sparse->describe(), " with ", sparse->sparse_dim(), " sparse dimensions, expected rows");
  if (!sparse->values().device().is_host()) {
    fail(ErrorCode::kUnimplemented, "DistributedDataParallel: the sparse gradient of ", name, " is on ",
         to_string(sparse->values().device()), ", expected memory of the CPU");
  }
}

ops::SparsePtr reduce_sparse(ProcessGroup& group, const Tensor& table, const ops::SparsePtr& own, int divisor) {
  const NoGradGuard without_grad;
  Dims row = table.sizes();
  row[0] = 0;
  Tensor indices = Tensor::empty(Dims{0}, DType::kInt64), values = Tensor::empty(row, table.dtype());
  if (own) {
    const ops::SparsePtr kept = coalesced(own);  // less to send
    indices = kept->indices().as_view(Dims{kept->nnz()}, Dims{1}, kept->indices().offset());
    values = kept->values().contiguous().clone();
    scale_elements(values.dtype(), values.raw_data(), static_cast<size_t>(values.numel()), 1.0 / divisor);
  }
  const Tensor counts = Tensor::empty(Dims{group.size()}, DType::kInt64);
  group.all_gather_into_tensor(counts, Tensor::scalar<int64_t>(indices.numel()))->wait();
  const std::vector<int64_t> count(counts.data<int64_t>(), counts.data<int64_t>() + counts.numel());
  const int64_t total = std::accumulate(count.begin(), count.end(), int64_t{0});
  row[0] = total;
  const Tensor all_indices = Tensor::empty(Dims{total}, DType::kInt64), all_values = Tensor::empty(row, table.dtype());
  std::vector<Tensor> index_parts, value_parts;
  for (int64_t at = 0; const int64_t rows : count) {
    index_parts.push_back(rows_of(all_indices, at, rows));
    value_parts.push_back(rows_of(all_values, at, rows));
    at += rows;
  }
  const WorkPtr works[] = {group.all_gather(index_parts, indices), group.all_gather(value_parts, values)};
  for (const WorkPtr& work : works) work->wait();
  const Tensor places = all_indices.as_view(Dims{1, total}, Dims{total, 1}, 0);
  return coalesced(ops::SparseTensor::coo(table.sizes(), places, all_values, false));
}

}  // namespace tensord::distributed
