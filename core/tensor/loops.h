#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/base/parallel.h"
#include "core/tensor/dims.h"

namespace tensord {

// A nest of loops over one shape that N operands walk with their own strides.
// Dimensions are ordered by the first operand's strides (largest outermost) and
// neighbors that every operand walks without a gap are merged, so a dense
// elementwise loop becomes one row.
template <size_t N>
class LoopNest {
 public:
  using Offsets = std::array<int64_t, N>;

  // Each entry of `strides` has one stride per size, 0 where the operand is broadcast.
  LoopNest(std::span<const int64_t> sizes, const std::array<Dims, N>& strides) {
    std::array<size_t, 64> order{};
    size_t ndim = 0;
    numel_ = 1;
    for (size_t d = 0; d < sizes.size(); ++d) {
      numel_ *= sizes[d];
      if (sizes[d] != 1) order[ndim++] = d;
    }
    std::stable_sort(order.begin(), order.begin() + ndim, [&](size_t a, size_t b) {
      for (size_t n = 0; n < N; ++n) {
        const int64_t sa = strides[n][a], sb = strides[n][b];
        if (sa != 0 && sb != 0 && sa != sb) return sa > sb;
      }
      return false;
    });
    for (size_t k = 0; k < ndim; ++k) {
      const size_t d = order[k];
      bool merges = !sizes_.empty();
      for (size_t n = 0; n < N && merges; ++n) merges = strides_[n].back() == strides[n][d] * sizes[d];
      if (merges) {
        sizes_.back() *= sizes[d];
        for (size_t n = 0; n < N; ++n) strides_[n].back() = strides[n][d];
      } else {
        sizes_.push_back(sizes[d]);
        for (size_t n = 0; n < N; ++n) strides_[n].push_back(strides[n][d]);
      }
    }
    if (sizes_.empty()) {
      sizes_.push_back(1);
      for (size_t n = 0; n < N; ++n) strides_[n].push_back(0);
    }
  }

  size_t ndim() const { return sizes_.size(); }
  int64_t numel() const { return numel_; }
  int64_t size(size_t dim) const { return sizes_[dim]; }
  int64_t stride(size_t operand, size_t dim) const { return strides_[operand][dim]; }

  // Calls row(offsets, count, steps) for pieces of the innermost dimension, in
  // parallel over ranges of at least `grain` elements.
  template <class Row>
  void parallel_rows(int64_t grain, Row&& row) const {
    parallel_for(numel_, grain, [&](int64_t begin, int64_t end) { rows(begin, end, row); });
  }

  // The same for the elements begin … end-1 in loop order, on the calling thread.
  template <class Row>
  void rows(int64_t begin, int64_t end, Row&& row) const {
    const size_t inner = ndim() - 1;
    Offsets steps;
    for (size_t n = 0; n < N; ++n) steps[n] = strides_[n][inner];
    std::array<int64_t, 64> index{};
    int64_t rest = begin;
    Offsets offset{};
    for (size_t d = ndim(); d-- > 0;) {
      index[d] = rest % sizes_[d];
      rest /= sizes_[d];
      for (size_t n = 0; n < N; ++n) offset[n] += index[d] * strides_[n][d];
    }
    while (begin < end) {
      const int64_t count = std::min(sizes_[inner] - index[inner], end - begin);
      row(offset, count, steps);
      begin += count;
      if (begin >= end) break;
      for (size_t n = 0; n < N; ++n) offset[n] -= index[inner] * strides_[n][inner];
      index[inner] = 0;
      for (size_t d = inner; d-- > 0;) {
        for (size_t n = 0; n < N; ++n) offset[n] += strides_[n][d];
        if (++index[d] < sizes_[d]) break;
        for (size_t n = 0; n < N; ++n) offset[n] -= sizes_[d] * strides_[n][d];
        index[d] = 0;
      }
    }
  }

 private:
  Dims sizes_;
  std::array<Dims, N> strides_;
  int64_t numel_ = 0;
};

}  // namespace tensord
