#pragma once

#include <span>
#include <string>

#include "core/ops/op.h"

namespace tensord::ops {

// Element types of quantised tensors; PyTorch's numbers.
enum class QuantizedType : int8_t { kQInt8 = 12, kQUInt8 = 13, kQInt32 = 14, kQUInt4x2 = 16 };
const char* name_of(QuantizedType type);
DType storage_dtype(QuantizedType type);
// The least and the largest number an element can be.
std::pair<int64_t, int64_t> range_of(QuantizedType type);

// PyTorch's numbers, which TorchScript code stores.
enum class QuantizationScheme : int8_t {
  kPerTensorAffine = 0,
  kPerChannelAffine = 1,
  kPerChannelFloatQParams = 4,  // scales and zero points are f32, and the zero point is a multiple of the scale
};

// What the integers of a quantised tensor stand for: (q - zero_point) * scale.
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

// A tensor of qint8 and the like. TorchScript calls it Tensor, but it is no Tensor here: an operator that does not
// know quantised tensors cannot read its bytes as ordinary numbers. See QUANTIZED(). Only its integers change, by
// activations in place.
class QuantizedTensor final : public OpaqueObject {
 public:
  // `values`: the integers, as they lie; of quint4x2 the bytes, two columns in each, the first in the lower half,
  // with `columns` in a row. Throws Error{kInvalidArgument} where the quantizer does not fit: scales that are no
  // positive numbers, zero points out of range, an axis that is not there.
  QuantizedTensor(QuantizedType type, Tensor values, Quantizer quantizer, int64_t columns = -1);

  std::string class_name() const override { return "Tensor"; }
  QuantizedType type() const { return type_; }
  const Tensor& values() const { return values_; }
  const Quantizer& quantizer() const { return quantizer_; }
  const Dims& sizes() const { return sizes_; }
  // Part of a module, which all runs share: refused by what writes in place.
  bool is_of_module() const { return is_of_module_; }
  void set_of_module() { is_of_module_ = true; }
  // Throws Error{kInvalidArgument} where the memory stands for more elements than it has (expand): packing would take
  // room for all of them, so that a small file could ask for any amount.
  void check_is_stored() const;
  // "qint8[2, 3]", for messages.
  std::string describe() const;

 private:
  const QuantizedType type_;
  const Tensor values_;
  const Quantizer quantizer_;
  Dims sizes_;
  bool is_of_module_ = false;
};
using QuantizedPtr = IntrusivePtr<QuantizedTensor>;

// Null when it is none.
const QuantizedTensor* as_quantized(const Value& value);
// Whether one is among the values, lists taken apart.
bool has_quantized(std::span<const Value> values);

// How operators take quantised tensors. One without an entry here refuses them by name, unless its schema asks for
// them by not asking for tensors.
const DirectFn* quantized_form(const Op& op);
// Throws Error{kUnimplemented} naming the operator and the tensor where there is none.
const DirectFn& checked_quantized_form(const Op& op, std::span<const Value> arguments);

// Collects one entry; made by QUANTIZED(). Several names, apart by blanks, share it.
class QuantizedBuilder {
 public:
  explicit QuantizedBuilder(const char* names) : names_(names) {}
  // A function of the raw values, whatever the schema says of their types.
  QuantizedBuilder& direct(DirectFn function);

 private:
  std::string names_;
};

#define QUANTIZED(NAMES)                                                                               \
  static const ::tensord::ops::QuantizedBuilder TENSORD_CONCAT(quantized_registration_, __COUNTER__) = \
      ::tensord::ops::QuantizedBuilder(NAMES)

}  // namespace tensord::ops
