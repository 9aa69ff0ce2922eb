#include "kernels/base/positions.h"

namespace tensord::kernels {

std::vector<int64_t> element_offsets(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  std::vector<int64_t> out{0};
  for (size_t d = 0; d < sizes.size(); ++d) {
    std::vector<int64_t> next;
    next.reserve(out.size() * static_cast<size_t>(sizes[d]));
    for (int64_t offset : out) {
      for (int64_t i = 0; i < sizes[d]; ++i) next.push_back(offset + i * strides[d]);
    }
    out = std::move(next);
  }
  return out;
}

}  // namespace tensord::kernels
