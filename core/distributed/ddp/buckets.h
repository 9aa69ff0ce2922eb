#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/ops/sparse.h"
#include "core/tensor/tensor.h"

namespace tensord::distributed {

// Indices into the parameters, one list for each bucket, in the order in which buckets are sent.
using BucketPlan = std::vector<std::vector<size_t>>;

// PyTorch's bucket assignment: each dtype has one open bucket. A parameter joins it, and the bucket is closed when it
// reaches its size limit. The i-th bucket of a dtype has the i-th limit; later ones have the last. Buckets are ordered
// by when they were closed; those still open at the end follow.
BucketPlan plan_buckets(std::span<const Tensor> parameters, std::span<const size_t> order,
                        std::span<const size_t> limits_bytes);

// One message: a dense buffer with one view for each parameter, with the parameter's own strides. Or the sparse
// gradient of one parameter.
struct Bucket {
  Bucket(std::vector<size_t> indices, std::span<const Tensor> parameters, bool is_sparse = false);

  std::vector<size_t> indices;
  bool is_sparse;
  ops::SparsePtr sparse;      // this rank's gradient, or null; after the reduction, the sum
  Tensor flat;                // undefined for a sparse gradient, as are the views
  std::vector<Tensor> views;  // by position in `indices`
  size_t pending = 0;         // gradients still missing in this pass
};

}  // namespace tensord::distributed
