#include "core/tensor/memory_order.h"

#include <algorithm>
#include <numeric>

namespace tensord {

Dims memory_order(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  Dims fastest_first(sizes.size(), 0);
  std::iota(fastest_first.begin(), fastest_first.end(), 0);
  std::reverse(fastest_first.begin(), fastest_first.end());
  // 1 if a is slower than b. An insertion sort can skip pairs that cannot be compared; std::sort cannot.
  const auto compare = [&](int64_t a, int64_t b) {
    const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
    if (strides[i] == 0 || strides[j] == 0) return 0;
    if (strides[i] != strides[j]) return strides[i] < strides[j] ? -1 : 1;
    return sizes[i] > sizes[j] ? 1 : 0;
  };
  for (size_t i = 1; i < sizes.size(); ++i) {
    size_t at = i;
    for (size_t before = i; before-- > 0;) {
      const int found = compare(fastest_first[before], fastest_first[at]);
      if (found < 0) break;
      if (found == 0) continue;
      std::swap(fastest_first[before], fastest_first[at]);
      at = before;
    }
  }
  std::reverse(fastest_first.begin(), fastest_first.end());
  return fastest_first;
}

Dims preserved_strides(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  if (is_non_overlapping_and_dense(sizes, strides)) return Dims(strides);
  const Dims order = memory_order(sizes, strides);
  Dims dense(sizes.size(), 0);
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const auto dim = static_cast<size_t>(order[i]);
    dense[dim] = stride;
    stride *= std::max<int64_t>(sizes[dim], 1);
  }
  return dense;
}

Tensor permuted(const Tensor& x, std::span<const int64_t> order) {
  Dims sizes = x.sizes(), strides = x.strides();
  for (size_t i = 0; i < order.size(); ++i) {
    sizes[i] = x.sizes()[static_cast<size_t>(order[i])];
    strides[i] = x.strides()[static_cast<size_t>(order[i])];
  }
  return x.as_view(std::move(sizes), std::move(strides), x.offset());
}

}  // namespace tensord
