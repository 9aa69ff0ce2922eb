#pragma once

#include <initializer_list>
#include <vector>

#include "tensord/index.h"
#include "tensord/ops.h"
//
#include "core/base/error.h"
#include "core/tensor/grad_mode.h"
#include "core/tensor/memory/shared_tensor.h"
#include "core/tensor/tensor.h"

// Tensors, dtypes, devices, storages, tensors shared between processes (core/tensor/memory/shared_tensor.h), and Error.
// A Tensor is a handle: copies of it refer to the same tensor.
namespace tensord {

// Makes a tensor with these values in row-major order: tensor({1.0, 2.0, 3.0, 4.0}, {2, 2}). Without sizes it has one
// dimension. Throws Error{kInvalidArgument} if the sizes do not match the number of values.
template <class T>
Tensor tensor(std::span<const T> values, const Dims& sizes) {
  Tensor out = Tensor::empty(sizes, dtype_of<T>);
  check(out.numel() == static_cast<int64_t>(values.size()), "tensor: ", values.size(), " values for the shape ", sizes);
  std::copy(values.begin(), values.end(), out.data<T>());
  return out;
}
template <class T>
Tensor tensor(std::initializer_list<T> values, const Dims& sizes) {
  return tensor(std::span<const T>(values.begin(), values.size()), sizes);
}
template <class T>
Tensor tensor(std::initializer_list<T> values) {
  return tensor(values, Dims{static_cast<int64_t>(values.size())});
}
template <class T>
Tensor tensor(const std::vector<T>& values, const Dims& sizes) {
  return tensor(std::span<const T>(values), sizes);
}
template <class T>
Tensor tensor(const std::vector<T>& values) {
  return tensor(values, Dims{static_cast<int64_t>(values.size())});
}

}  // namespace tensord
