#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/ops/attributes/packed.h"
#include "core/ops/quantized.h"
#include "kernels/quantized/product.h"

namespace tensord::kernels {

// A weight of 8 bits with what its products need, packed when first asked for. Thread-safe.
class QuantizedWeight {
 public:
  // `weight`: qint8 of two dimensions, per tensor or with channels along dimension 0. Throws Error otherwise.
  explicit QuantizedWeight(ops::QuantizedPtr weight);

  const ops::QuantizedPtr& tensor() const { return weight_; }
  int64_t outputs() const { return weight_->sizes()[0]; }
  int64_t inputs() const { return weight_->sizes()[1]; }
  const QuantizedMatrix& matrix() const;
  // By output; see QuantizedEpilogue.
  const std::vector<float>& scales() const { return scales_; }
  const int32_t* column_sums() const;  // packs
  const int32_t* zero_points() const { return has_zero_points_ ? zero_points_.data() : nullptr; }

 private:
  const ops::QuantizedPtr weight_;
  std::vector<float> scales_;
  std::vector<int32_t> zero_points_;
  bool has_zero_points_ = false;
  mutable std::once_flag packed_;
  mutable std::unique_ptr<const QuantizedMatrix> matrix_;
  mutable std::vector<int32_t> column_sums_;
};

// Rounded to float16, what is too large to the largest one, as fbgemm packs it.
Tensor round_to_half(const Tensor& weight);

// PyTorch's packed linear layer: a weight of 8 bits, or one that was rounded to float16, and a bias of float32.
class LinearParams final : public ops::OpaqueObject {
 public:
  static constexpr const char* kClass = "__torch__.torch.classes.quantized.LinearPackedParamsBase";

  // `weight` is qint8, or float32 for float16. Throws Error where weight and bias do not form a layer.
  LinearParams(const ops::Value& weight, const ops::Value& bias);

  std::string class_name() const override { return kClass; }
  bool is_half() const { return !weight_; }
  // Throws Error naming what was expected. Of 8 bits.
  const QuantizedWeight& weight() const;
  const ops::PackedOp& half() const;
  const Tensor& half_weight() const { return half_weight_; }
  const Tensor& bias() const { return bias_; }  // undefined: none
  const float* bias_or_zeros() const { return bias_values_.data(); }
  int64_t outputs() const { return weight_ ? weight_->outputs() : half_weight_.sizes()[0]; }
  int64_t inputs() const { return weight_ ? weight_->inputs() : half_weight_.sizes()[1]; }

 private:
  std::unique_ptr<const QuantizedWeight> weight_;
  Tensor half_weight_;  // float32
  IntrusivePtr<ops::PackedOp> half_;
  Tensor bias_;
  std::vector<float> bias_values_;
};
using LinearParamsPtr = IntrusivePtr<LinearParams>;

// y = x @ weight^T + bias with x rounded by one scale for all of it, as PyTorch's dynamic layers do. x is row-major,
// `rows` of the weight's inputs. `scratch` has scratch_bytes, aligned to 64.
struct DynamicLinear {
  const QuantizedWeight& weight;
  const float* bias;  // never null
  bool reduces_range = false;
  bool relu = false;

  size_t scratch_bytes(int64_t rows) const;
  void run(const float* x, int64_t rows, float* y, void* scratch, int threads) const;
};

}  // namespace tensord::kernels
