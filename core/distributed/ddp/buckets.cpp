#include "core/distributed/ddp/buckets.h"

#include <algorithm>

#include "core/base/error.h"

namespace tensord::distributed {

BucketPlan plan_buckets(std::span<const Tensor> parameters, std::span<const size_t> order,
                        std::span<const size_t> limits_bytes) {
  check_internal(!limits_bytes.empty(), "buckets without a limit");
  struct Open {
    DType dtype;
    std::vector<size_t> indices;
    size_t size_bytes = 0, closed = 0;
  };
  std::vector<Open> open;
  BucketPlan plan;
  for (const size_t index : order) {
    const Tensor& parameter = parameters[index];
    auto found = std::find_if(open.begin(), open.end(), [&](const Open& o) { return o.dtype == parameter.dtype(); });
    if (found == open.end()) found = open.insert(open.end(), {parameter.dtype(), {}});
    found->indices.push_back(index);
    found->size_bytes += parameter.size_bytes();
    if (found->size_bytes < limits_bytes[std::min(found->closed, limits_bytes.size() - 1)]) continue;
    plan.push_back(std::move(found->indices));
    found->indices.clear();
    found->size_bytes = 0;
    ++found->closed;
  }
  for (Open& rest : open) {
    if (!rest.indices.empty()) plan.push_back(std::move(rest.indices));
  }
  return plan;
}

Bucket::Bucket(std::vector<size_t> which, std::span<const Tensor> parameters, bool holds_sparse)
    : indices(std::move(which)), is_sparse(holds_sparse) {
  if (is_sparse) return;
  int64_t count = 0;
  for (const size_t index : indices) count += parameters[index].numel();
  const Tensor& first = parameters[indices.front()];
  flat = Tensor::empty(Dims{count}, first.dtype(), first.device());
  int64_t at = 0;
  for (const size_t index : indices) {
    const Tensor& parameter = parameters[index];
    const bool keeps = is_non_overlapping_and_dense(parameter.sizes(), parameter.strides());
    views.push_back(
        flat.as_view(parameter.sizes(), keeps ? parameter.strides() : contiguous_strides(parameter.sizes()), at));
    at += parameter.numel();
  }
}

}  // namespace tensord::distributed
