#pragma once

#include <span>
#include <string>

#include "core/ops/value.h"

namespace tensord::ops {

// The element types of quantized tensors among the dtypes: kQInt8, kQUInt8, kQInt32, kQUInt4x2.
using QuantizedType = DType;
DType storage_dtype(QuantizedType type);
// The least and the largest number an element can be.
std::pair<int64_t, int64_t> range_of(QuantizedType type);

// PyTorch's numbers, which TorchScript code stores.
enum class QuantizationScheme : int8_t {
  kPerTensorAffine = 0,
  kPerChannelAffine = 1,
  kPerChannelFloatQParams = 4,  // scales and zero points are f32, and the zero point is a multiple of the scale
};

// What the integers of a quantized tensor stand for: (q - zero_point) * scale.
struct Quantizer {
  QuantizationScheme scheme = QuantizationScheme::kPerTensorAffine;
  double scale = 1;
  int64_t zero_point = 0;
  // Per channel: one of each along `axis`, dense; f64 and i64, or f32 both.
  Tensor scales = {}, zero_points = {};
  int64_t axis = -1;

  bool is_per_channel() const { return scheme != QuantizationScheme::kPerTensorAffine; }
  double scale_at(int64_t channel) const;
  int64_t zero_point_at(int64_t channel) const;
};

// A tensor of qint8 and the like. Operators know it by IMPL with kQuantizedCPU. Only its integers change, by
// activations in place.
class QuantizedTensor final : public TensorImpl {
 public:
  // `values`: the integers, as they lie; of quint4x2 the bytes, two columns in each, the first in the lower half,
  // with `columns` in a row. Throws Error{kInvalidArgument} where the quantizer does not fit: scales that are no
  // positive numbers, zero points out of range, an axis that is not there.
  QuantizedTensor(QuantizedType type, Tensor values, Quantizer quantizer, int64_t columns = -1);

  QuantizedType type() const { return dtype; }
  const Dims& sizes() const { return TensorImpl::sizes; }
  const Tensor& values() const { return values_; }
  const Quantizer& quantizer() const { return quantizer_; }
  // Throws Error{kInvalidArgument} where the memory stands for more elements than it has (expand): packing would take
  // room for all of them, so that a small file could ask for any amount.
  void check_is_stored() const;
  std::string describe() const override;

 private:
  const Tensor values_;
  const Quantizer quantizer_;
};
using QuantizedPtr = IntrusivePtr<QuantizedTensor>;

// Null when it is none.
const QuantizedTensor* as_quantized(const Value& value);

}  // namespace tensord::ops
