#include "kernels/base/numbers.h"

#include <algorithm>

namespace tensord::kernels {

std::vector<int64_t> integers_of(const Tensor& x) {
  const Tensor wide = x.to(Device{}).to(DType::kInt64).contiguous();
  return {wide.data<int64_t>(), wide.data<int64_t>() + wide.numel()};
}

std::vector<float> floats_of(const Tensor& x) {
  const Tensor dense = x.to(Device{}).contiguous();
  return {dense.data<float>(), dense.data<float>() + dense.numel()};
}

Tensor vector_of(std::span<const int64_t> values) {
  const Tensor out = Tensor::empty(Dims{static_cast<int64_t>(values.size())}, DType::kInt64);
  std::copy(values.begin(), values.end(), out.data<int64_t>());
  return out;
}

}  // namespace tensord::kernels
