#pragma once

#include "core/tensor/tensor.h"

namespace tensord::kernels {

// The number of ones in each row of a mask, and whether they all precede its zeros.
struct NestedLengths {
  explicit NestedLengths(const Tensor& mask);
  int64_t longest() const;
  // bool [rows, longest], on the CPU: true beyond each length.
  Tensor padding() const;

  Dims lengths;
  bool is_left_aligned = true;
};

}  // namespace tensord::kernels
