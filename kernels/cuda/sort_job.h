#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"

namespace tensord::kernels {

// An element to be sorted: a number with the order of the values, and the position in its line. No two entries of a
// line are equal, so equal values keep their order.
struct alignas(16) SortEntry {
  uint64_t key = 0;
  int64_t position = 0;
};

enum class SortUse : int8_t {
  kKeys,   // in → to, unsorted
  kTiles,  // from → to: sorted runs of kSortTile
  kMerge,  // from → to: sorted runs of `run` become sorted runs of twice that
};
inline constexpr int64_t kSortTile = 32;

// Dense lines of `length` elements.
struct SortJob {
  SortUse use = SortUse::kKeys;
  int8_t dtype = 0;
  bool is_descending = false;
  int64_t lines = 0, length = 0, run = 0;
  cuda::DeviceAddress in, from, to;
};

enum class PickUse : int8_t {
  kRange,      // from `first` on, `count` of each line
  kMedian,     // one of each line: a NaN if there is one, else the lower median
  kNanMedian,  // the lower median of all elements but NaN
  kMode,       // the last of the most frequent value, and the smallest of equally frequent ones
  kMark,       // positions: 1 where another value begins, else 0
  kGroups,     // `groups`: the sums of those marks. Gives each group its first entry, its begin and its members
};

// Reads sorted entries. Values are words of `width` bytes; addresses may be null.
struct PickJob {
  PickUse use = PickUse::kRange;
  int8_t width = 0;
  bool is_floating = false;
  int64_t lines = 0, length = 0, first = 0, count = 0;
  cuda::DeviceAddress entries, in, groups;
  cuda::DeviceAddress values, positions;  // dense; for kGroups: positions of the first entries
  cuda::DeviceAddress starts, members;    // for kGroups: the begin of each; the group of each element
};

// The places of values in sorted sequences: dense rows of double (or int64) numbers, one row for all values or one for
// each row of them.
struct SearchJob {
  bool is_integer = false, is_right = false, is_narrow = false, is_shared = false;
  int64_t values_count = 0, row = 0, length = 0;
  cuda::DeviceAddress sequences, values, order, out;  // `order` may be null
};

}  // namespace tensord::kernels
