#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"

namespace tensord::kernels {

// An element to be sorted: a number whose order is that of the values, and where it stands in its line. No two of a
// line are equal, so equal values keep their order.
struct alignas(16) SortEntry {
  uint64_t key = 0;
  int64_t position = 0;
};

enum class SortUse : int8_t {
  kKeys,   // in → to, as they stand
  kTiles,  // from → to: pieces of kSortTile in order
  kMerge,  // from → to: pieces of `run` are in order, afterwards pieces of twice as many
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
  kRange,      // those from `first` on, `count` of each line
  kMedian,     // of each line one: a NaN if there is one, else the lower median
  kNanMedian,  // the lower median of what is not NaN
  kMode,       // the last of the most frequent value, the smallest of those
  kMark,       // positions: 1 where another value begins, else 0
  kGroups,     // `groups`: from those marks, summed. To each group its first entry, where it begins and its members
};

// Reads entries in order. Values are words of `width` bytes; addresses may be null.
struct PickJob {
  PickUse use = PickUse::kRange;
  int8_t width = 0;
  bool is_floating = false;
  int64_t lines = 0, length = 0, first = 0, count = 0;
  cuda::DeviceAddress entries, in, groups;
  cuda::DeviceAddress values, positions;  // dense; of kGroups: positions of the first entries
  cuda::DeviceAddress starts, members;    // of kGroups: where each begins; the group of each element
};

// Where values belong in sorted sequences: dense rows of double (or int64) numbers, one for all or for each row of
// values.
struct SearchJob {
  bool is_integer = false, is_right = false, is_narrow = false, is_shared = false;
  int64_t values_count = 0, row = 0, length = 0;
  cuda::DeviceAddress sequences, values, order, out;  // `order` may be null
};

}  // namespace tensord::kernels
