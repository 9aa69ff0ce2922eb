// Windows, means, resizing and normalisation of quantised tensors.
#include <cmath>

#include "core/base/parallel.h"
#include "core/ops/registry.h"
#include "kernels/quantized/tensors.h"

namespace tensord::kernels {
namespace {

using ops::Value;
using Arguments = std::span<const Value>;
using Returns = std::vector<Value>;

// The integers as float32, less the zero point: exact, and padding with zeros means 0.
Tensor centred(const QuantizedTensor& x) {
  const Quantizer steps = per_tensor(1, x.quantizer().zero_point);
  return dequantize_values(bytes_of(box(x.type(), x.values(), steps)));
}

// An operator on the numbers in steps of the scale, whose result is rounded to whole steps of the same scale: means,
// maxima and weighted means of neighbours.
ops::DirectFn on_steps(const char* name) {
  return [name](Arguments v, Returns& returns) {
    const QuantizedTensor& x = bytes_of(v[0]);
    std::vector<Value> arguments(v.begin(), v.end()), results;
    arguments[0] = centred(x);
    ops::run(ops::get_op(name), arguments, results);
    const Tensor rounded =
        quantize_values(results.at(0).to_tensor(), x.type(), per_tensor(1, x.quantizer().zero_point));
    returns.push_back(box(x.type(), rounded, x.quantizer()));
  };
}

// The same on the integers, the zero point being taken off at the end: where it takes part in roundings.
ops::DirectFn on_integers(const char* name) {
  return [name](Arguments v, Returns& returns) {
    const QuantizedTensor& x = bytes_of(v[0]);
    std::vector<Value> arguments(v.begin(), v.end()), results;
    arguments[0] = x.values().to(DType::kFloat32);
    ops::run(ops::get_op(name), arguments, results);
    const int64_t zero_point = x.quantizer().zero_point;
    const Tensor steps = ops::call("aten::sub.Scalar", results.at(0).to_tensor(), static_cast<double>(zero_point), 1);
    returns.push_back(box(x.type(), quantize_values(steps, x.type(), per_tensor(1, zero_point)), x.quantizer()));
  };
}

[[maybe_unused]] const bool windows = [] {
  for (const char* name :
       {"aten::max_pool1d", "aten::max_pool2d", "aten::max_pool3d", "aten::avg_pool2d", "aten::avg_pool3d",
        "aten::adaptive_avg_pool2d", "aten::adaptive_avg_pool3d", "aten::mean.dim", "aten::upsample_nearest1d",
        "aten::upsample_nearest2d", "aten::upsample_nearest2d.vec", "aten::upsample_nearest3d"}) {
    ops::BoxedBuilder(ops::BoxedKind::kQuantized, name).direct(on_steps(name));
  }
  for (const char* name : {"aten::upsample_bilinear2d", "aten::upsample_bilinear2d.vec"})
    ops::BoxedBuilder(ops::BoxedKind::kQuantized, name).direct(on_integers(name));
  return true;
}();

// y = (x - mean) / sqrt(var + eps) * weight + bias, by channel.
Value batch_norm(Arguments v, bool relu) {
  const QuantizedTensor& x = bytes_of(v[0]);
  const Quantizer result = per_tensor(v[6], v[7]);
  check(x.sizes().size() >= 2, "expected channels along dimension 1, but got ", x.sizes());
  const int64_t channels = x.sizes()[1];
  const auto numbers = [&](const Value& value, float missing) {
    if (value.is_none()) return std::vector<float>(static_cast<size_t>(channels), missing);
    const Tensor& tensor = value.to_tensor();
    check(tensor.dtype() == DType::kFloat32 && tensor.ndim() == 1 && tensor.numel() == channels, "expected ", channels,
          " numbers of float32, but got ", describe(tensor));
    const Tensor dense = tensor.contiguous();
    return std::vector<float>(dense.data<float>(), dense.data<float>() + channels);
  };
  const std::vector<float> weight = numbers(v[1], 1), bias = numbers(v[2], 0), mean = numbers(v[3], 0),
                           var = numbers(v[4], 1);
  const auto eps = static_cast<float>(ops::Unbox<double>::get(v[5]));
  const auto input_scale = static_cast<float>(x.quantizer().scale), scale = static_cast<float>(result.scale);
  const Tensor source = x.values().contiguous(), out = Tensor::empty(source.sizes(), source.dtype());
  const int64_t inner = source.numel() / std::max<int64_t>(x.sizes()[0] * channels, 1);
  const auto [least, most] = ops::range_of(x.type());
  const bool is_signed = x.type() == QuantizedType::kQInt8;
  const auto zero_point = static_cast<float>(result.zero_point);
  const float low = relu ? std::max(zero_point, static_cast<float>(least)) : static_cast<float>(least);
  const auto high = static_cast<float>(most);
  const auto zero = static_cast<int32_t>(x.quantizer().zero_point);
  parallel_for_cost(x.sizes()[0] * channels, static_cast<double>(inner), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto c = static_cast<size_t>(row % channels);
      const float inverse = 1.0f / std::sqrt(var[c] + eps);
      const float alpha = inverse * weight[c] * (input_scale / scale);
      const float beta = (bias[c] - mean[c] * inverse * weight[c]) / scale;
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
  return box(x.type(), out, result);
}
void plain_norm(Arguments v, Returns& returns) { returns.push_back(batch_norm(v, false)); }
void relu_norm(Arguments v, Returns& returns) { returns.push_back(batch_norm(v, true)); }

#define NORM                                                                                           \
  "(Tensor qx, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, float output_scale, " \
  "int output_zero_point) -> Tensor"
QUANTIZED_OP("quantized::batch_norm" NORM, &plain_norm);
QUANTIZED_OP("quantized::batch_norm_relu" NORM, &relu_norm);
QUANTIZED_OP("quantized::batch_norm1d" NORM, &plain_norm);
QUANTIZED_OP("quantized::batch_norm1d_relu" NORM, &relu_norm);
QUANTIZED_OP("quantized::batch_norm2d" NORM, &plain_norm);
QUANTIZED_OP("quantized::batch_norm2d_relu" NORM, &relu_norm);
QUANTIZED_OP("quantized::batch_norm3d" NORM, &plain_norm);
QUANTIZED_OP("quantized::batch_norm3d_relu" NORM, &relu_norm);

}  // namespace
}  // namespace tensord::kernels
