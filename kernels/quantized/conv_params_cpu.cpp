// The weight of a packed convolution in the layout of its products.
#include "kernels/quantized/conv_params.h"

namespace tensord::kernels {

void ConvParams::pack() const {
  const Tensor dense = weight_->values().contiguous();
  const int8_t* from = dense.data<int8_t>();
  const int64_t n = outputs(), c = group_inputs(), t = taps(), per_group = n / geometry_.groups;
  std::vector<int8_t> rows(static_cast<size_t>(n * c * t));
  column_sums_.assign(static_cast<size_t>(n), 0);
  for (int64_t o = 0; o < n; ++o) {
    int32_t sum = 0;
    for (int64_t i = 0; i < c; ++i) {
      for (int64_t k = 0; k < t; ++k) {
        const int8_t value = from[(o * c + i) * t + k];
        rows[static_cast<size_t>((o * t + k) * c + i)] = value;
        sum += value;
      }
    }
    column_sums_[static_cast<size_t>(o)] = sum - static_cast<int32_t>(c * t) * zero_points_[static_cast<size_t>(o)];
  }
  if (is_depthwise()) {
    depthwise_.resize(rows.size());
    for (int64_t o = 0; o < n; ++o)
      for (int64_t k = 0; k < t; ++k) depthwise_[static_cast<size_t>(k * n + o)] = rows[static_cast<size_t>(o * t + k)];
    return;
  }
  matrices_.clear();  // memory of a call that was cancelled
  for (int64_t g = 0; g < geometry_.groups; ++g)
    matrices_.push_back(
        std::make_unique<const QuantizedMatrix>(rows.data() + g * per_group * c * t, per_group, c * t, c * t, 1));
}

const QuantizedMatrix& ConvParams::matrix(int64_t group) const {
  std::call_once(packed_, [this] { pack(); });
  return *matrices_.at(static_cast<size_t>(group));
}
const int32_t* ConvParams::column_sums() const {
  std::call_once(packed_, [this] { pack(); });
  return column_sums_.data();
}
const std::vector<int8_t>& ConvParams::depthwise_weight() const {
  std::call_once(packed_, [this] { pack(); });
  return depthwise_;
}

}  // namespace tensord::kernels
