// Indices of sparse tensors, one row for each dimension: the largest, those in a range, and changes to a row.
#include <algorithm>

#include "kernels/sparse/sparse.h"

namespace tensord::kernels {
namespace {

int64_t* row_of(const Tensor& indices, int64_t at) { return indices.data<int64_t>() + at * indices.sizes()[1]; }

}  // namespace

int64_t largest_index(const Tensor& indices) {
  const Tensor dense = indices.contiguous();
  const auto* index = dense.data<int64_t>();
  return dense.numel() > 0 ? *std::max_element(index, index + dense.numel()) : -1;
}

std::vector<int64_t> elements_between(const Tensor& indices, int64_t at, int64_t begin, int64_t end) {
  std::vector<int64_t> which;
  const int64_t* row = row_of(indices, at);
  for (int64_t i = 0; i < indices.sizes()[1]; ++i) {
    if (row[i] >= begin && row[i] < end) which.push_back(i);
  }
  return which;
}

AskedElements requested_elements(const Tensor& indices, int64_t at, int64_t size, const Tensor& index) {
  // The positions at which each index is selected.
  std::vector<std::pair<int64_t, int64_t>> asked;
  for (int64_t i = 0; i < index.numel(); ++i) {
    const int64_t at_index = index.data<int64_t>()[i];
    if (at_index < -size || at_index >= size) fail(ErrorCode::kOutOfRange, "index_select(): index out of range");
    asked.emplace_back(at_index < 0 ? at_index + size : at_index, i);
  }
  std::sort(asked.begin(), asked.end());
  AskedElements out;
  const int64_t* row = row_of(indices, at);
  for (int64_t i = 0; i < indices.sizes()[1]; ++i) {
    auto it = std::lower_bound(asked.begin(), asked.end(), std::pair(row[i], int64_t{-1}));
    for (; it != asked.end() && it->first == row[i]; ++it) {
      out.which.push_back(i);
      out.position.push_back(it->second);
    }
  }
  return out;
}

void zero_row(const Tensor& indices, int64_t at) { std::fill_n(row_of(indices, at), indices.sizes()[1], 0); }

void shift_row(const Tensor& indices, int64_t at, int64_t by) {
  int64_t* row = row_of(indices, at);
  for (int64_t i = 0; i < indices.sizes()[1]; ++i) row[i] += by;
}

void set_row(const Tensor& indices, int64_t at, std::span<const int64_t> values) {
  std::copy(values.begin(), values.end(), row_of(indices, at));
}

}  // namespace tensord::kernels
