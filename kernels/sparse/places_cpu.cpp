// Linear indices of elements, their order, and the begins of rows. Autograd does not see these functions.
#include <algorithm>

#include "kernels/sparse/sparse.h"

namespace tensord::kernels {

Tensor places_of(const Tensor& indices, std::span<const int64_t> sizes) {
  const int64_t count = indices.sizes()[1];
  const Tensor out = Tensor::empty(Dims{count}, DType::kInt64);
  auto* place = out.data<int64_t>();
  std::fill_n(place, count, 0);
  const auto* index = indices.data<int64_t>();
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t* row = index + static_cast<int64_t>(d) * count;
    for (int64_t i = 0; i < count; ++i) place[i] = place[i] * sizes[d] + row[i];
  }
  return out;
}

Tensor indices_of(std::span<const int64_t> places, std::span<const int64_t> sizes) {
  const auto count = static_cast<int64_t>(places.size()), dims = static_cast<int64_t>(sizes.size());
  const Tensor out = Tensor::empty(Dims{dims, count}, DType::kInt64);
  auto* index = out.data<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    int64_t place = places[static_cast<size_t>(i)];
    for (int64_t d = dims - 1; d >= 0; --d) {
      const int64_t size = sizes[static_cast<size_t>(d)];
      index[d * count + i] = place % size;
      place /= size;
    }
  }
  return out;
}

Groups group_places(const Tensor& places) {
  const int64_t count = places.numel();
  const auto* place = places.data<int64_t>();
  Groups out{{}, Tensor::empty(Dims{count}, DType::kInt64)};
  auto* group = out.group.data<int64_t>();
  const auto add = [&](int64_t i) {
    if (out.distinct.empty() || out.distinct.back() != place[i]) out.distinct.push_back(place[i]);
    group[i] = static_cast<int64_t>(out.distinct.size()) - 1;
  };
  out.distinct.reserve(static_cast<size_t>(count));
  if (std::is_sorted(place, place + count)) {
    for (int64_t i = 0; i < count; ++i) add(i);
    return out;
  }
  std::vector<std::pair<int64_t, int64_t>> order(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) order[static_cast<size_t>(i)] = {place[i], i};
  std::sort(order.begin(), order.end());
  for (const auto& [ignored, i] : order) add(i);
  return out;
}

Tensor starts_of(std::span<const int64_t> rows, int64_t count) {
  const Tensor out = Tensor::empty(Dims{count + 1}, DType::kInt64);
  auto* starts = out.data<int64_t>();
  std::fill_n(starts, count + 1, 0);
  for (const int64_t row : rows) ++starts[row + 1];
  for (int64_t row = 0; row < count; ++row) starts[row + 1] += starts[row];
  return out;
}

SharedPlaces shared_places(const Tensor& left, const Tensor& right) {
  SharedPlaces out;
  for (int64_t i = 0, k = 0; i < left.numel() && k < right.numel();) {
    const int64_t x = left.data<int64_t>()[i], y = right.data<int64_t>()[k];
    if (x == y) {
      out.places.push_back(x);
      out.from_left.push_back(i);
      out.from_right.push_back(k);
    }
    i += x <= y;
    k += y <= x;
  }
  return out;
}

}  // namespace tensord::kernels
