#pragma once

#include <algorithm>
#include <utility>

#include "core/ops/unbox.h"

namespace tensord::kernels {

enum class PadMode { kReflect, kReplicate, kCircular };

// The padding of a dimension at its ends; negative: it is cropped.
struct PadEdges {
  int64_t before = 0, after = 0;

  // Of dimension `d`: pairs come for the last dimension first.
  static PadEdges of(const ops::IntList& pad, int64_t d, int64_t ndim) {
    const auto pair = static_cast<size_t>(ndim - 1 - d);
    if (2 * pair >= pad.size()) return {};
    return {pad[2 * pair], pad[2 * pair + 1]};
  }
  // The first element of `size` that negative edges leave, and what is behind the last one.
  std::pair<int64_t, int64_t> kept_of(int64_t size) const {
    return {std::max<int64_t>(-before, 0), size - std::max<int64_t>(-after, 0)};
  }
};

// Where position i of the result (0 = first element of the input) is read. Around is: around what the edges leave.
inline int64_t pad_source(PadMode mode, int64_t i, int64_t size, std::pair<int64_t, int64_t> kept) {
  switch (mode) {
    case PadMode::kReflect:
      if (i < 0) i = -i;
      return i >= size ? 2 * (size - 1) - i : i;
    case PadMode::kReplicate: return std::clamp<int64_t>(i, 0, size - 1);
    default: {
      const auto [begin, end] = kept;
      return i < begin ? i + end - begin : i >= end ? i - (end - begin) : i;
    }
  }
}

}  // namespace tensord::kernels
