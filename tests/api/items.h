#pragma once

#include <tensord/tensord.h>

#include <vector>

namespace tensord {

// A tensor's elements, row by row.
template <class T = float>
std::vector<T> items_of(const Tensor& tensor) {
  const Tensor dense = tensor.contiguous();
  return std::vector<T>(dense.data<T>(), dense.data<T>() + dense.numel());
}

}  // namespace tensord
