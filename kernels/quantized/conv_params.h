#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/quantized/product.h"
#include "kernels/quantized/tensors.h"

namespace tensord::kernels {

// PyTorch's packed convolution of two or three dimensions, with a weight of qint8 and a bias of float32. Immutable.
class ConvParams final : public ops::OpaqueObject {
 public:
  struct Geometry {
    std::vector<int64_t> stride, padding, dilation;
    int64_t groups = 1;
  };

  // `weight` is [outputs, inputs / groups, kernel…]. Throws Error where the parts do not form a layer.
  ConvParams(QuantizedPtr weight, const ops::Value& bias, Geometry geometry);

  std::string class_name() const override { return class_of(dims()); }
  static std::string class_of(size_t dims) {
    return "__torch__.torch.classes.quantized.Conv" + std::to_string(dims) + "dPackedParamsBase";
  }
  size_t dims() const { return weight_->sizes().size() - 2; }
  const QuantizedPtr& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }  // undefined: none
  const float* bias_or_zeros() const { return bias_values_.data(); }
  const Geometry& geometry() const { return geometry_; }
  int64_t outputs() const { return weight_->sizes()[0]; }
  int64_t group_inputs() const { return weight_->sizes()[1]; }
  int64_t taps() const;  // of the kernel
  bool is_depthwise() const { return group_inputs() == 1 && outputs() == geometry_.groups; }
  const std::vector<float>& scales() const { return scales_; }
  const int32_t* zero_points() const { return has_zero_points_ ? zero_points_.data() : nullptr; }

  // Packed when first asked for. [outputs][taps][inputs] of a group; of a depthwise one [taps][outputs].
  const QuantizedMatrix& matrix(int64_t group) const;
  const int32_t* column_sums() const;  // by output, less the taps' and inputs' zero points
  const std::vector<int8_t>& depthwise_weight() const;

 private:
  void pack() const;

  const QuantizedPtr weight_;
  Tensor bias_;
  std::vector<float> bias_values_, scales_;
  std::vector<int32_t> zero_points_;
  bool has_zero_points_ = false;
  const Geometry geometry_;
  mutable std::once_flag packed_;
  mutable std::vector<std::unique_ptr<const QuantizedMatrix>> matrices_;
  mutable std::vector<int32_t> column_sums_;
  mutable std::vector<int8_t> depthwise_;
};
using ConvParamsPtr = IntrusivePtr<ConvParams>;

}  // namespace tensord::kernels
