#pragma once

#include "core/tensor/tensor.h"

namespace tensord::kernels {

// Rows of scores. A single one may come without its dimension, and with a label of none or one.
struct MarginRows {
  int64_t count, classes;

  // Throws Error with PyTorch's text for sizes and dtypes that do not fit.
  MarginRows(const char* op, const Tensor& x, const Tensor& target, bool has_label_lists);
};

}  // namespace tensord::kernels
