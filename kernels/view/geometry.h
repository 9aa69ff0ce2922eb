#pragma once

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/tensor/dims.h"

namespace tensord::kernels {

// The layout of elements in memory, as in as_strided.
struct Geometry {
  Dims sizes, strides;
  int64_t offset;

  void check_valid() const {
    check(sizes.size() == strides.size(), "mismatch in length of strides and shape");
    check(offset >= 0, "Tensor: invalid storage offset ", offset);
    for (const int64_t stride : strides) check(stride >= 0, "as_strided: Negative strides are not supported");
    for (const int64_t size : sizes) check(size >= 0, "as_strided: negative size ", size);
  }
  bool is_empty() const { return std::find(sizes.begin(), sizes.end(), 0) != sizes.end(); }
  // One past the last element.
  int64_t end() const {
    int64_t last = offset;
    for (size_t d = 0; d < sizes.size(); ++d) {
      int64_t reach;
      const bool fits = !__builtin_mul_overflow(sizes[d] - 1, strides[d], &reach) &&
                        !__builtin_add_overflow(last, reach, &last) && last < std::numeric_limits<int64_t>::max();
      check(fits, "as_strided: the strides overflow");
    }
    return last + 1;
  }
};

}  // namespace tensord::kernels
