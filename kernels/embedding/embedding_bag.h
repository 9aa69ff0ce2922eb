#pragma once

#include <cstdint>

// Sums of table rows (embedding_bag_cpu.cpp).
namespace tensord::kernels {

enum class BagMode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

// Bags [begin, end) of rows of a table: bag i has the indices from offsets[i] to offsets[i + 1], the last
// one those to the end. T is the table's and result's type, I that of indices and offsets.
template <class T, class I>
struct BagArgs {
  const T* table;
  int64_t table_rows, row_stride, width;
  const I *indices, *offsets;
  int64_t index_count, offset_count;
  const T* weights;     // a factor per index, or null
  int64_t padding_idx;  // rows with this index are skipped; -1: none
  BagMode mode;
  T* out;  // a row of `width` per bag
  // Of each bag, or null: how many rows, and for kMax the row that gave each element.
  I *bag_sizes, *max_indices;

  int64_t first(int64_t bag) const { return static_cast<int64_t>(offsets[bag]); }
  int64_t last(int64_t bag) const {
    return bag + 1 < offset_count ? static_cast<int64_t>(offsets[bag + 1]) : index_count;
  }
};

// REQUIRES: all indices and offsets are in range.
template <class T, class I>
void sum_bags(const BagArgs<T, I>& args, int64_t begin, int64_t end);

}  // namespace tensord::kernels
