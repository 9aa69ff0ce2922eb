#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/ops/sparse.h"
#include "core/tensor/tensor.h"

namespace tensord::distributed {

// Which gradients travel together: indices into the parameters, in the order in which buckets are sent.
using BucketPlan = std::vector<std::vector<size_t>>;

// PyTorch's rule: each dtype has a bucket that is open; a parameter joins it, and the bucket is closed when it reaches
// its limit, of which the i-th bucket of a dtype has the i-th, and all later ones the last. Buckets come in the order
// in which they were closed; those left open at the end follow.
BucketPlan plan_buckets(std::span<const Tensor> parameters, std::span<const size_t> order,
                        std::span<const size_t> limits_bytes);

// One message: dense memory, and each parameter's part of it, laid out as the parameter is. Or one parameter's gradient
// that is sparse.
struct Bucket {
  Bucket(std::vector<size_t> indices, std::span<const Tensor> parameters, bool is_sparse = false);

  std::vector<size_t> indices;
  bool is_sparse;
  ops::SparsePtr sparse;      // this rank's, null for none; then that of all
  Tensor flat;                // undefined where it is sparse, as views
  std::vector<Tensor> views;  // by position in `indices`
  size_t pending = 0;         // parts that have not come in this pass
};

}  // namespace tensord::distributed
