#pragma once

#include "core/ops/op.h"
#include "kernels/cuda/sort_job.h"

namespace tensord::kernels {

// The sorted lines of a tensor on a CUDA device: sorting, medians, modes and unique select from them.
class SortedLines {
 public:
  // Lines along `dim`; `as_they_stand` leaves them unsorted.
  SortedLines(const ops::KernelContext& context, const Tensor& x, int64_t dim, bool descending,
              bool as_they_stand = false);

  // Writes `count` values and positions of each line along `dim` to `values` (which may be undefined) and `positions`,
  // of any strides.
  void pick(PickUse use, int64_t first, int64_t count, const Tensor& values, const Tensor& positions) const;

  // For one line: the first position and the begin of each group of equal neighbors, and the group of each element.
  struct Groups {
    Tensor positions, starts, members;
  };
  Groups groups() const;

 private:
  PickJob job(PickUse use) const;

  const ops::KernelContext& context_;
  const int64_t dim_;
  Tensor lines_;    // dense, the sorted dimension last
  Tensor entries_;  // SortEntry
};

}  // namespace tensord::kernels
