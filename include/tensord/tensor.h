#pragma once

#include <initializer_list>
#include <iosfwd>
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

// As PyTorch's C++ prints them: the numbers, then the kind of tensor. Waits for the tensor's device.
//    1  2
//    3  4
//   [ CPULongType{2,2} ]
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);
std::ostream& operator<<(std::ostream& out, DType dtype);           // float32
std::ostream& operator<<(std::ostream& out, const Device& device);  // cuda:0

// A new tensor with these values, row-major: tensor({1.0, 2.0, 3.0, 4.0}, {2, 2}). Without sizes it has one dimension.
// Throws Error{kInvalidArgument} when the sizes want another number of values.
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
