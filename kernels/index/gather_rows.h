#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"

namespace tensord::kernels {

// Rows of a table by index, for each of `outer` tables that lie a stride apart; sizes in bytes.
struct RowGather {
  int64_t outer = 1, outer_stride = 0;
  int64_t table_rows = 0, row_stride = 0, row_bytes = 0;
  int64_t count = 0;  // indices

  // Copies row indices[i] of table o to row o * count + i of a dense `out`, in parallel. `index` is int32 or
  // int64. Throws Error, before anything is written, when an index is out of range.
  void run(const void* table, DType index, const void* indices, void* out) const;
  // The rows of dimension `dim` of `x`; REQUIRES: rows_are_dense(x, dim).
  static RowGather of(const Tensor& x, int64_t dim, int64_t count);
  static bool rows_are_dense(const Tensor& x, int64_t dim);
};

}  // namespace tensord::kernels
