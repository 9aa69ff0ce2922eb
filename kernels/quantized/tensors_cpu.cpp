// On the CPU: float32 to the integers of quantized tensors and back, and functions of 8-bit numbers as tables.
#include <cmath>

#include "core/base/parallel.h"
#include "core/tensor/strided_copy.h"
#include "kernels/quantized/product.h"
#include "kernels/quantized/tensors.h"

namespace tensord::kernels {

using ops::QuantizationScheme;
using ops::Value;

namespace {

// Calls fn(i, channel) for the elements of a row-major tensor, from several threads.
template <class Fn>
void for_each_channel(const Dims& sizes, const Quantizer& quantizer, Fn&& fn) {
  int64_t inner = 1, count = 1;
  for (const int64_t size : sizes) count *= size;
  if (quantizer.is_per_channel()) {
    for (size_t d = static_cast<size_t>(quantizer.axis) + 1; d < sizes.size(); ++d) inner *= sizes[d];
  }
  const int64_t channels = quantizer.is_per_channel() ? sizes[static_cast<size_t>(quantizer.axis)] : 1;
  parallel_for_cost(count, 1.0, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) fn(i, quantizer.is_per_channel() ? i / inner % channels : 0);
  });
}

template <class T>
void quantize_as(const float* x, T* out, const Dims& sizes, const Quantizer& quantizer, QuantizedType type) {
  const auto [least, most] = ops::range_of(type);
  const auto low = static_cast<double>(least), high = static_cast<double>(most);
  if (!quantizer.is_per_channel()) {
    const float inverse = 1.0f / static_cast<float>(quantizer.scale);
    const auto zero_point = static_cast<double>(quantizer.zero_point);
    for_each_channel(sizes, quantizer, [&](int64_t i, int64_t) {
      const double y = static_cast<double>(std::nearbyint(x[i] * inverse)) + zero_point;
      out[i] = static_cast<T>(y > low ? (y < high ? y : high) : low);
    });
    return;
  }
  for_each_channel(sizes, quantizer, [&](int64_t i, int64_t channel) {
    const float inverse = 1.0f / static_cast<float>(quantizer.scale_at(channel));
    const double y =
        static_cast<double>(std::nearbyint(x[i] * inverse)) + static_cast<double>(quantizer.zero_point_at(channel));
    out[i] = static_cast<T>(y > low ? (y < high ? y : high) : low);
  });
}

// With one scale for each channel, PyTorch rounds once, from double.
template <class T>
void dequantize_as(const T* x, float* out, const Dims& sizes, const Quantizer& quantizer) {
  const auto scale = static_cast<float>(quantizer.scale);
  for_each_channel(sizes, quantizer, [&](int64_t i, int64_t channel) {
    const int64_t steps = static_cast<int64_t>(x[i]) - quantizer.zero_point_at(channel);
    out[i] = quantizer.is_per_channel() ? static_cast<float>(static_cast<double>(steps) * quantizer.scale_at(channel))
                                        : static_cast<float>(steps) * scale;
  });
}

bool is_dense(const Tensor& x) { return is_non_overlapping_and_dense(x.sizes(), x.strides()); }

}  // namespace

Tensor quantize_values(const Tensor& x, QuantizedType type, const Quantizer& quantizer) {
  check(x.dtype() == DType::kFloat32, "expected float32 to quantize, but got ", name_of(x.dtype()));
  check(type != QuantizedType::kQUInt4x2, "quantizing to quint4x2 is not supported");
  const bool keeps_order = !quantizer.is_per_channel() && is_dense(x);
  const Tensor source = keeps_order ? x : x.contiguous();
  const Tensor out = Tensor::empty_strided(source.sizes(), source.strides(), ops::storage_dtype(type));
  const float* from = source.data<float>();
  switch (out.dtype()) {
    case DType::kInt8: quantize_as(from, out.data<int8_t>(), x.sizes(), quantizer, type); break;
    case DType::kUInt8:
      if (quantizer.is_per_channel()) {
        quantize_as(from, out.data<uint8_t>(), x.sizes(), quantizer, type);
      } else {
        quantize_bytes({static_cast<float>(quantizer.scale), static_cast<int32_t>(quantizer.zero_point)}, from,
                       x.numel(), out.data<uint8_t>());
      }
      break;
    default: quantize_as(from, out.data<int32_t>(), x.sizes(), quantizer, type); break;
  }
  return out;
}

Tensor dequantize_values(const QuantizedTensor& x) {
  if (x.type() == QuantizedType::kQUInt4x2 || x.quantizer().scheme == QuantizationScheme::kPerChannelFloatQParams)
    fail(ErrorCode::kUnimplemented, "dequantizing ", x.describe(), " is not supported but by embeddings");
  const bool keeps_order = !x.quantizer().is_per_channel() && is_dense(x.values());
  const Tensor source = keeps_order ? x.values() : x.values().contiguous();
  const Tensor out = Tensor::empty_strided(source.sizes(), source.strides(), DType::kFloat32);
  float* to = out.data<float>();
  switch (source.dtype()) {
    case DType::kInt8: dequantize_as(source.data<int8_t>(), to, x.sizes(), x.quantizer()); break;
    case DType::kUInt8: dequantize_as(source.data<uint8_t>(), to, x.sizes(), x.quantizer()); break;
    default: dequantize_as(source.data<int32_t>(), to, x.sizes(), x.quantizer()); break;
  }
  return out;
}

Value map_bytes(const QuantizedTensor& x, const Quantizer& result, const std::function<float(float)>& function) {
  const auto [least, most] = ops::range_of(x.type());
  const float inverse = 1.0f / static_cast<float>(result.scale);
  const Dequantizer dequantize(x.quantizer());
  uint8_t table[256];
  for (int64_t q = least; q <= most; ++q) {
    const float y = function(dequantize(static_cast<float>(q)));
    const double rounded = static_cast<double>(std::nearbyint(y * inverse)) + static_cast<double>(result.zero_point);
    const auto low = static_cast<double>(least), high = static_cast<double>(most);
    const double bounded = rounded > low ? (rounded < high ? rounded : high) : low;  // NaN becomes the least
    table[static_cast<uint8_t>(q)] = static_cast<uint8_t>(static_cast<int64_t>(bounded));
  }
  const Tensor source = is_dense(x.values()) ? x.values() : x.values().contiguous();
  const Tensor out = Tensor::empty_strided(source.sizes(), source.strides(), source.dtype());
  const auto* from = static_cast<const uint8_t*>(source.raw_data());
  auto* to = static_cast<uint8_t*>(out.raw_data());
  parallel_for_cost(out.numel(), 0.5, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = table[from[i]];
  });
  return box(x.type(), out, result);
}

}  // namespace tensord::kernels
