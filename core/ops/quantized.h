#pragma once

#include <span>
#include <string>

#include "core/ops/value.h"

namespace tensord::ops {

// The element types of quantized tensors among the dtypes: kQInt8, kQUInt8, kQInt32, kQUInt4x2.
using QuantizedType = DType;
DType storage_dtype(QuantizedType type);
// The smallest and the largest value of an element.
std::pair<int64_t, int64_t> range_of(QuantizedType type);

// PyTorch's numbers, which TorchScript code stores.
enum class QuantizationScheme : int8_t {
  kPerTensorAffine = 0,
  kPerChannelAffine = 1,
  kPerChannelFloatQParams = 4,  // scales and zero points are f32; the zero point is a multiple of the scale
};

// The meaning of a quantized tensor's integers: (q - zero_point) * scale.
struct Quantizer {
  QuantizationScheme scheme = QuantizationScheme::kPerTensorAffine;
  double scale = 1;
  int64_t zero_point = 0;
  // Per channel: one value for each index of `axis`, dense; f64 and i64, or both f32.
  Tensor scales = {}, zero_points = {};
  int64_t axis = -1;

  bool is_per_channel() const { return scheme != QuantizationScheme::kPerTensorAffine; }
  double scale_at(int64_t channel) const;
  int64_t zero_point_at(int64_t channel) const;
};

// A tensor of qint8 and similar dtypes. Operators register kernels for it by IMPL with kQuantizedCPU. Only its integers
// can change, by activations in place.
class QuantizedTensor final : public TensorImpl {
 public:
  // `values` are the integers; for quint4x2 the bytes, with two columns in each, the first in the lower half, and
  // `columns` in a row. Throws Error{kInvalidArgument} if the quantizer does not fit: scales that are not positive,
  // zero points out of range, an axis that does not exist.
  QuantizedTensor(QuantizedType type, Tensor values, Quantizer quantizer, int64_t columns = -1);

  QuantizedType type() const { return dtype; }
  const Dims& sizes() const { return TensorImpl::sizes; }
  const Tensor& values() const { return values_; }
  const Quantizer& quantizer() const { return quantizer_; }
  // Throws Error{kInvalidArgument} if the memory has fewer elements than the sizes say (expand): packing would allocate
  // all of them, so a small file could request any amount.
  void check_is_stored() const;
  std::string describe() const override;

 private:
  const Tensor values_;
  const Quantizer quantizer_;
};
using QuantizedPtr = IntrusivePtr<QuantizedTensor>;

// Null for other values.
const QuantizedTensor* as_quantized(const Value& value);

}  // namespace tensord::ops
