#pragma once

#include "core/ops/op.h"
#include "kernels/cuda/sort_job.h"

namespace tensord::kernels {

// Lines of a tensor on a CUDA device, in order: what sorting, medians, modes and unique pick from.
class SortedLines {
 public:
  // Lines along `dim`; those of `as_they_stand` are not sorted.
  SortedLines(const ops::KernelContext& context, const Tensor& x, int64_t dim, bool descending,
              bool as_they_stand = false);

  // Values and positions in `values` (which may be undefined) and `positions`, of any strides: `count` of each line,
  // along `dim`.
  void pick(PickUse use, int64_t first, int64_t count, const Tensor& values, const Tensor& positions) const;

  // Of one line: each group of equal neighbors has its first position and where it begins; each element its group.
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
