#pragma once

#include <optional>
#include <string>

#include "core/ops/unbox.h"
#include "core/tensor/tensor.h"

// The calls of searchsorted and bucketize: arguments checked and put into one form.
namespace tensord::kernels {

struct Search {
  Tensor sequences, values;      // the last dimension of `sequences` is sorted
  std::optional<Tensor> sorter;  // of the same shape: the order that sorts them
  bool right = false;            // after equal items, not before
  bool narrow = false;           // int32 results
};

// Throws Error with PyTorch's text for what does not fit.
Search make_search(const Tensor& sequences, const Tensor& values, bool narrow, bool right,
                   const std::optional<std::string>& side, const std::optional<Tensor>& sorter);
Search make_buckets(const Tensor& values, const Tensor& boundaries, bool narrow, bool right);
// A single value that is searched.
Tensor search_scalar(const ops::Scalar& value);

}  // namespace tensord::kernels
