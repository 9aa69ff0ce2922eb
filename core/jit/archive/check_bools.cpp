#include "core/jit/archive/check_bools.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/tensor/device_copy.h"

namespace tensord::jit {

void check_bools(const Tensor& given, const std::string& source) {
  if (given.dtype() != DType::kBool || given.numel() == 0) return;
  const Tensor tensor = host_copy(given);
  // The range from the first to the last element, gaps included. Strides are not negative.
  int64_t last = 0;
  for (int64_t dim = 0; dim < tensor.ndim(); ++dim)
    last += (tensor.size(dim) - 1) * tensor.strides()[static_cast<size_t>(dim)];
  const auto* bytes = static_cast<const unsigned char*>(tensor.raw_data());
  if (std::any_of(bytes, bytes + last + 1, [](unsigned char byte) { return byte > 1; }))
    fail(ErrorCode::kDataLoss, source, ": a bool is neither 0 nor 1");
}

}  // namespace tensord::jit
