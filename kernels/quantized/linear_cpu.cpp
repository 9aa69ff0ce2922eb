// Linear layers from quint8 to quint8.
#include <cstring>

#include "core/base/parallel.h"
#include "kernels/quantized/linear_params.h"
#include "kernels/quantized/requantize.h"

namespace tensord::kernels {
namespace {

using ops::Value;

template <bool kRelu>
void run_linear(std::span<const Value> v, std::vector<Value>& returns) {
  const QuantizedTensor& x = layer_input(v[0]);
  const auto params = ops::Unbox<LinearParamsPtr>::get(v[1]);
  const QuantizedWeight& weight = params->weight();
  const QuantizedMatrix& matrix = weight.matrix();
  const Quantizer result = layer_result(v[2], v[3]);
  check(!x.sizes().empty() && x.sizes().back() == matrix.depth(), "expected an input with ", matrix.depth(),
        " numbers in its last dimension, but got ", x.sizes());
  Dims sizes = x.sizes();
  sizes.back() = matrix.columns();
  const Tensor dense = x.values().contiguous(), out = Tensor::empty(sizes, DType::kUInt8);
  const int64_t rows = dense.numel() / matrix.depth(), stride = matrix.row_words() * 4;
  const Tensor words = Tensor::empty(Dims{rows * stride}, DType::kUInt8);
  std::vector<int32_t> row_sums(static_cast<size_t>(weight.zero_points() ? rows : 0));
  for (int64_t r = 0; r < rows; ++r) {
    uint8_t* row = words.data<uint8_t>() + r * stride;
    std::memcpy(row, dense.data<uint8_t>() + r * matrix.depth(), static_cast<size_t>(matrix.depth()));
    std::memset(row + matrix.depth(), 0, static_cast<size_t>(stride - matrix.depth()));
    if (row_sums.empty()) continue;
    for (int64_t i = 0; i < matrix.depth(); ++i) row_sums[static_cast<size_t>(r)] += row[i];
  }
  Requantization requantization(x, result, weight.scales(), params->bias_or_zeros(), kRelu);
  QuantizedEpilogue& finish = requantization.finish;
  finish.column_sums = weight.column_sums();
  finish.weight_zero_points = weight.zero_points();
  finish.row_sums = row_sums.data();
  finish.out8 = out.data<uint8_t>();
  finish.out_stride = matrix.columns();
  quantized_product(matrix, static_cast<const uint32_t*>(words.raw_data()), rows, finish, thread_budget());
  returns.push_back(box(QuantizedType::kQUInt8, out, result));
}

QUANTIZED_OP("quantized::linear", &run_linear<false>);
QUANTIZED_OP("quantized::linear_relu", &run_linear<true>);

}  // namespace
}  // namespace tensord::kernels
