#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/dtype.h"

// Positions and offsets of elements.
namespace tensord::kernels {

// Position of an index in a dimension of this size; negative counts from the end. Throws Error{kOutOfRange}.
inline int64_t wrap_position(int64_t index, int64_t size, int64_t dim) {
  if (index < -size || index >= size) [[unlikely]] {
    fail(ErrorCode::kOutOfRange, "index ", index, " is out of bounds for dimension ", dim, " with size ", size);
  }
  return index < 0 ? index + size : index;
}

// Calls fn.template operator()<T>() with an unsigned type of the element's width, to move bits.
template <class Fn>
void dispatch_width(DType dtype, Fn&& fn) {
  switch (size_of(dtype)) {
    case 1: return fn.template operator()<uint8_t>();
    case 2: return fn.template operator()<uint16_t>();
    case 4: return fn.template operator()<uint32_t>();
    default: return fn.template operator()<uint64_t>();
  }
}

// Element offsets of all positions of a shape with these strides, row-major order.
std::vector<int64_t> element_offsets(std::span<const int64_t> sizes, std::span<const int64_t> strides);

}  // namespace tensord::kernels
