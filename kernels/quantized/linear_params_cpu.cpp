// Packed linear layers: weights in the layouts of products and of float16, and a layer that rounds its input in each
// call.
#include "kernels/quantized/linear_params.h"

#include <algorithm>

#include "core/tensor/half.h"

namespace tensord::kernels {

Tensor round_to_half(const Tensor& weight) {
  constexpr float kLargest = 65504;
  const Tensor source = weight.contiguous(), out = Tensor::empty(weight.sizes(), DType::kFloat32);
  for (int64_t i = 0; i < out.numel(); ++i)
    out.data<float>()[i] = static_cast<float>(Half(std::clamp(source.data<float>()[i], -kLargest, kLargest)));
  return out;
}

const QuantizedMatrix& QuantizedWeight::matrix() const {
  std::call_once(packed_, [this] {
    const Tensor& values = weight_->values();
    matrix_ = std::make_unique<const QuantizedMatrix>(values.data<int8_t>(), outputs(), inputs(), values.strides()[0],
                                                      values.strides()[1]);
    column_sums_ = matrix_->sums();
    for (size_t i = 0; i < column_sums_.size(); ++i)
      column_sums_[i] -= static_cast<int32_t>(inputs()) * zero_points_[i];
  });
  return *matrix_;
}

void DynamicLinear::run(const float* x, int64_t rows, float* y, void* scratch, int threads) const {
  const QuantizedMatrix& matrix = weight.matrix();
  const Extremes extremes = extremes_of(x, rows * matrix.depth());
  check(extremes.is_finite, "the input has numbers that are not finite, for which there is no scale");
  const RowQuantizer quantizer = choose_quantizer(extremes.least, extremes.greatest, 0, reduces_range ? 127 : 255);
  auto* words = static_cast<uint32_t*>(scratch);
  auto* row_sums = weight.zero_points() ? reinterpret_cast<int32_t*>(words + rows * matrix.row_words()) : nullptr;
  quantize_rows(quantizer, x, rows, matrix.depth(), words, matrix.row_words(), row_sums);
  QuantizedEpilogue finish;
  finish.zero_point = quantizer.zero_point;
  finish.column_sums = weight.column_sums();
  finish.weight_zero_points = weight.zero_points();
  finish.row_sums = row_sums;
  finish.column_scales = weight.scales().data();
  finish.scale = quantizer.scale;
  finish.bias = bias;
  finish.relu = relu;
  finish.out = y;
  finish.out_stride = matrix.columns();
  quantized_product(matrix, words, rows, finish, threads);
}

}  // namespace tensord::kernels
