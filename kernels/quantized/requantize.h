#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "kernels/quantized/product.h"
#include "kernels/quantized/tensors.h"

namespace tensord::kernels {

// From sums of products to 8 bits again, for one call: what depends on the scales of input and result.
struct Requantization {
  std::vector<float> multipliers, scaled_bias;  // by output
  QuantizedEpilogue finish;                     // of these; the caller fills in where results go

  // `scales`: of the weights; `bias`: never null. The input is quint8.
  Requantization(const QuantizedTensor& x, const Quantizer& result, const std::vector<float>& scales, const float* bias,
                 bool relu) {
    const auto input_scale = static_cast<float>(x.quantizer().scale), result_scale = static_cast<float>(result.scale);
    for (size_t i = 0; i < scales.size(); ++i) {
      const float both = input_scale * scales[i];
      multipliers.push_back(both / result_scale);
      scaled_bias.push_back(bias[i] / both);
    }
    finish.zero_point = static_cast<int32_t>(x.quantizer().zero_point);
    finish.out_zero_point = static_cast<int32_t>(result.zero_point);
    finish.least = relu ? finish.out_zero_point : 0;
    finish.most = 255;
    finish.multipliers = multipliers.data();
    finish.scaled_bias = scaled_bias.data();
  }
  Requantization(const Requantization&) = delete;
  Requantization& operator=(const Requantization&) = delete;
};

// The input of a layer, and the quantizer that a call gives for its result; both quint8.
inline const QuantizedTensor& layer_input(const ops::Value& value) {
  const QuantizedTensor& x = bytes_of(value);
  check(x.type() == QuantizedType::kQUInt8, "expected an input of quint8, but got ", x.describe());
  return x;
}
inline Quantizer layer_result(const ops::Value& scale, const ops::Value& zero_point) {
  const Quantizer result = per_tensor(scale, zero_point);
  // Checked before it is used.
  box(QuantizedType::kQUInt8, Tensor::empty(Dims{0}, DType::kUInt8), result);
  return result;
}

}  // namespace tensord::kernels
