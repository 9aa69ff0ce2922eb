#include "kernels/pointwise/divisor.h"

#include <algorithm>

namespace tensord::kernels {

bool has_zero_element(const Tensor& x) {
  const Tensor wide = x.to(DType::kInt64).contiguous();
  const int64_t* values = wide.data<int64_t>();
  return std::find(values, values + wide.numel(), 0) != values + wide.numel();
}

}  // namespace tensord::kernels
