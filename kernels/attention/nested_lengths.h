#pragma once

#include "core/tensor/tensor.h"

namespace tensord::kernels {

// Ones of each row of a mask, and whether all of them stand before its zeros.
struct NestedLengths {
  explicit NestedLengths(const Tensor& mask);
  int64_t longest() const;
  // bool [rows, longest], on the processor: true beyond each length.
  Tensor padding() const;

  Dims lengths;
  bool is_left_aligned = true;
};

}  // namespace tensord::kernels
