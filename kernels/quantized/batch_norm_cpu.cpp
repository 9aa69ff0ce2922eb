// Normalization of quantized tensors by channel.
#include <algorithm>
#include <cmath>

#include "core/base/parallel.h"
#include "kernels/quantized/bytes.h"

namespace tensord::kernels {

ops::Value norm_bytes(const QuantizedTensor& x, const ByteNorm& norm) {
  const int64_t channels = x.sizes()[1];
  const auto input_scale = static_cast<float>(x.quantizer().scale), scale = static_cast<float>(norm.result.scale);
  const Tensor source = x.values().contiguous(), out = Tensor::empty(source.sizes(), source.dtype());
  const int64_t inner = source.numel() / std::max<int64_t>(x.sizes()[0] * channels, 1);
  const auto [least, most] = ops::range_of(x.type());
  const bool is_signed = x.type() == QuantizedType::kQInt8;
  const auto zero_point = static_cast<float>(norm.result.zero_point);
  const float low = norm.relu ? std::max(zero_point, static_cast<float>(least)) : static_cast<float>(least);
  const auto high = static_cast<float>(most);
  const auto zero = static_cast<int32_t>(x.quantizer().zero_point);
  parallel_for_cost(x.sizes()[0] * channels, static_cast<double>(inner), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto c = static_cast<size_t>(row % channels);
      const float inverse = 1.0f / std::sqrt(norm.var[c] + norm.eps);
      const float alpha = inverse * norm.weight[c] * (input_scale / scale);
      const float beta = (norm.bias[c] - norm.mean[c] * inverse * norm.weight[c]) / scale;
      for (int64_t i = row * inner; i < (row + 1) * inner; ++i) {
        const int32_t q = is_signed ? source.data<int8_t>()[i] : source.data<uint8_t>()[i];
        const float product = static_cast<float>(q - zero) * alpha;
        float y = std::nearbyint(product + beta) + zero_point;
        y = y > low ? y : low;
        y = y < high ? y : high;
        if (is_signed)
          out.data<int8_t>()[i] = static_cast<int8_t>(y);
        else
          out.data<uint8_t>()[i] = static_cast<uint8_t>(y);
      }
    }
  });
  return box(x.type(), out, norm.result);
}

}  // namespace tensord::kernels
