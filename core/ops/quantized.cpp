#include "core/ops/quantized.h"

#include <cmath>
#include <utility>

#include "core/base/error.h"

namespace tensord::ops {
namespace {

void check_scale(double scale) {
  const auto narrow = static_cast<float>(scale);
  check(std::isfinite(narrow) && narrow > 0 && std::isfinite(1.0f / narrow), "a quantized tensor has a scale of ",
        scale, ", which is not a positive number");
}

void check_zero_point(int64_t zero_point, QuantizedType type) {
  const auto [least, most] = range_of(type);
  check(zero_point >= least && zero_point <= most, "a quantized tensor has a zero point of ", zero_point, ", where ",
        name_of(type), " goes from ", least, " to ", most);
}

void check_channels(const Quantizer& quantizer, const Dims& sizes, QuantizedType type) {
  const auto dims = static_cast<int64_t>(sizes.size());
  check(quantizer.axis >= 0 && quantizer.axis < dims, "a quantized tensor of ", dims,
        " dimensions has its channels along axis ", quantizer.axis);
  const int64_t channels = sizes[static_cast<size_t>(quantizer.axis)];
  const bool is_float = quantizer.scheme == QuantizationScheme::kPerChannelFloatQParams;
  for (const Tensor* tensor : {&quantizer.scales, &quantizer.zero_points}) {
    check(tensor->defined() && !tensor->is_meta() && tensor->ndim() == 1 && tensor->numel() == channels,
          "a quantized tensor with ", channels, " channels has ",
          tensor->defined() ? concat("scales or zero points ", tensord::describe(*tensor)) : "no scales");
  }
  const DType scale_dtype = is_float ? DType::kFloat32 : DType::kFloat64;
  const DType zero_dtype = is_float ? DType::kFloat32 : DType::kInt64;
  check(quantizer.scales.dtype() == scale_dtype && quantizer.zero_points.dtype() == zero_dtype &&
            quantizer.scales.is_contiguous() && quantizer.zero_points.is_contiguous(),
        "a quantized tensor has scales of ", tensord::name_of(quantizer.scales.dtype()), " and zero points of ",
        tensord::name_of(quantizer.zero_points.dtype()));
  for (int64_t i = 0; i < channels; ++i) {
    if (is_float) {
      const float scale = quantizer.scales.data<float>()[i], zero_point = quantizer.zero_points.data<float>()[i];
      // A row of equal numbers has a scale of 0.
      check(std::isfinite(scale) && scale >= 0 && std::isfinite(zero_point), "a quantized tensor has a scale of ",
            scale, " and a zero point of ", zero_point);
    } else {
      check_scale(quantizer.scales.data<double>()[i]);
      check_zero_point(quantizer.zero_points.data<int64_t>()[i], type);
    }
  }
}

}  // namespace

DType storage_dtype(QuantizedType type) {
  if (type == QuantizedType::kQInt8) return DType::kInt8;
  return type == QuantizedType::kQInt32 ? DType::kInt32 : DType::kUInt8;
}

std::pair<int64_t, int64_t> range_of(QuantizedType type) {
  switch (type) {
    case QuantizedType::kQInt8: return {-128, 127};
    case QuantizedType::kQUInt8: return {0, 255};
    case QuantizedType::kQInt32: return {INT32_MIN, INT32_MAX};
    case QuantizedType::kQUInt4x2: return {0, 15};
    default: fail(ErrorCode::kInternal, name_of(type), " is not a quantized type");
  }
}

double Quantizer::scale_at(int64_t channel) const {
  if (!is_per_channel()) return scale;
  return scheme == QuantizationScheme::kPerChannelAffine ? scales.data<double>()[channel]
                                                         : static_cast<double>(scales.data<float>()[channel]);
}

int64_t Quantizer::zero_point_at(int64_t channel) const {
  if (!is_per_channel()) return zero_point;
  check(scheme == QuantizationScheme::kPerChannelAffine, "the zero points are not integers");
  return zero_points.data<int64_t>()[channel];
}

QuantizedTensor::QuantizedTensor(QuantizedType type, Tensor values, Quantizer quantizer, int64_t columns)
    : values_(std::move(values)), quantizer_(std::move(quantizer)) {
  layout = Functionality::kQuantized;
  TensorImpl::sizes = values_.sizes();
  dtype = type;
  device = values_.device();
  check_internal(values_.dtype() == storage_dtype(type), "a quantized tensor over ", tensord::describe(values_));
  if (type == QuantizedType::kQUInt4x2) {
    check(!TensorImpl::sizes.empty() && columns >= 0 && (columns + 1) / 2 == TensorImpl::sizes.back(),
          "a quint4x2 tensor with ", columns, " columns lies in ", tensord::describe(values_));
    TensorImpl::sizes.back() = columns;
  }
  numel = checked_numel(TensorImpl::sizes);
  if (quantizer_.is_per_channel()) {
    check_channels(quantizer_, TensorImpl::sizes, type);
  } else {
    check_scale(quantizer_.scale);
    check_zero_point(quantizer_.zero_point, type);
  }
}

void QuantizedTensor::check_is_stored() const {
  const auto stored = static_cast<int64_t>(values_.storage()->size_bytes() / size_of(values_.dtype()));
  check(values_.numel() <= stored, "a layer's weight is ", describe(), ", but its memory has ", stored, " elements");
}

std::string QuantizedTensor::describe() const { return concat(name_of(dtype), TensorImpl::sizes); }

const QuantizedTensor* as_quantized(const Value& value) {
  if (!value.is_tensor() || value.to_tensor().impl()->layout != Functionality::kQuantized) return nullptr;
  return static_cast<const QuantizedTensor*>(value.to_tensor().impl());
}

}  // namespace tensord::ops
