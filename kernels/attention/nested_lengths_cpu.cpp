#include "kernels/attention/nested_lengths.h"

#include <algorithm>

namespace tensord::kernels {

NestedLengths::NestedLengths(const Tensor& mask) : lengths(static_cast<size_t>(mask.sizes()[0]), 0) {
  const Tensor dense = mask.to(Device{}).contiguous();
  const auto columns = mask.sizes()[1];
  for (size_t i = 0; i < lengths.size(); ++i) {
    const bool* row = dense.data<bool>() + static_cast<int64_t>(i) * columns;
    lengths[i] = std::count(row, row + columns, true);
    is_left_aligned &= std::find(row, row + columns, false) - row == lengths[i];
  }
}

int64_t NestedLengths::longest() const { return *std::max_element(lengths.begin(), lengths.end()); }

Tensor NestedLengths::padding() const {
  const Tensor out = Tensor::empty(Dims{static_cast<int64_t>(lengths.size()), longest()}, DType::kBool);
  bool* to = out.data<bool>();
  for (const int64_t length : lengths) {
    std::fill_n(to, length, false);
    std::fill(to + length, to + longest(), true);
    to += longest();
  }
  return out;
}

}  // namespace tensord::kernels
