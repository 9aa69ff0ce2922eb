// Pooling, means, resizing and normalization of quantized tensors.
#include "core/ops/registry.h"
#include "kernels/base/numbers.h"
#include "kernels/quantized/bytes.h"
#include "ops/pointwise.h"

namespace tensord::kernels {
namespace {

using ops::Value;
using Arguments = std::span<const Value>;
using Returns = std::vector<Value>;

// The integers as float32 less the zero point: exact, and padding with zeros means 0.
Tensor centered(const QuantizedTensor& x) {
  const Quantizer steps = per_tensor(1, x.quantizer().zero_point);
  return dequantize_values(bytes_of(box(x.type(), x.values(), steps)));
}

// Applies an operator to the numbers in units of the scale and rounds the result to the same scale: means, maxima and
// weighted means of neighbors.
ops::ReturnFn on_steps(const char* name) {
  return [name](Arguments v, Returns& returns) {
    const QuantizedTensor& x = bytes_of(v[0]);
    std::vector<Value> arguments(v.begin(), v.end()), results;
    arguments[0] = centered(x);
    ops::run(ops::get_op(name), arguments, results);
    const Tensor rounded =
        quantize_values(results.at(0).to_tensor(), x.type(), per_tensor(1, x.quantizer().zero_point));
    returns.push_back(box(x.type(), rounded, x.quantizer()));
  };
}

// The same on the integers, subtracting the zero point at the end, for operators whose rounding involves it.
ops::ReturnFn on_integers(const char* name) {
  return [name](Arguments v, Returns& returns) {
    const QuantizedTensor& x = bytes_of(v[0]);
    std::vector<Value> arguments(v.begin(), v.end()), results;
    arguments[0] = x.values().to(DType::kFloat32);
    ops::run(ops::get_op(name), arguments, results);
    const int64_t zero_point = x.quantizer().zero_point;
    const Tensor steps = ops::sub(results.at(0).to_tensor(), static_cast<double>(zero_point));
    returns.push_back(box(x.type(), quantize_values(steps, x.type(), per_tensor(1, zero_point)), x.quantizer()));
  };
}

[[maybe_unused]] const bool windows = [] {
  for (const char* name :
       {"aten::max_pool1d", "aten::max_pool2d", "aten::max_pool3d", "aten::avg_pool2d", "aten::avg_pool3d",
        "aten::adaptive_avg_pool2d", "aten::adaptive_avg_pool3d", "aten::mean.dim", "aten::upsample_nearest1d",
        "aten::upsample_nearest2d", "aten::upsample_nearest2d.vec", "aten::upsample_nearest3d"}) {
    ops::ImplBuilder(name, ops::kQuantizedCPU, on_steps(name));
  }
  for (const char* name : {"aten::upsample_bilinear2d", "aten::upsample_bilinear2d.vec"})
    ops::ImplBuilder(name, ops::kQuantizedCPU, on_integers(name));
  return true;
}();

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
    return floats_of(tensor);
  };
  const auto eps = static_cast<float>(ops::Unbox<double>::get(v[5]));
  return norm_bytes(x, {numbers(v[1], 1), numbers(v[2], 0), numbers(v[3], 0), numbers(v[4], 1), eps, result, relu});
}
void plain_norm(Arguments v, Returns& returns) { returns.push_back(batch_norm(v, false)); }
void relu_norm(Arguments v, Returns& returns) { returns.push_back(batch_norm(v, true)); }

QUANTIZED_OP("quantized::batch_norm", &plain_norm);
QUANTIZED_OP("quantized::batch_norm_relu", &relu_norm);
QUANTIZED_OP("quantized::batch_norm1d", &plain_norm);
QUANTIZED_OP("quantized::batch_norm1d_relu", &relu_norm);
QUANTIZED_OP("quantized::batch_norm2d", &plain_norm);
QUANTIZED_OP("quantized::batch_norm2d_relu", &relu_norm);
QUANTIZED_OP("quantized::batch_norm3d", &plain_norm);
QUANTIZED_OP("quantized::batch_norm3d_relu", &relu_norm);

}  // namespace
}  // namespace tensord::kernels
