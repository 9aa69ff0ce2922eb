#pragma once

#include <string>
#include <vector>

#include "core/ops/custom_class.h"
#include "core/ops/quantized.h"

namespace tensord::kernels {

// PyTorch's packed table.
class EmbeddingParams final : public ops::OpaqueObject {
 public:
  static constexpr const char* kClass = "__torch__.torch.classes.quantized.EmbeddingPackedParamsBase";

  explicit EmbeddingParams(ops::QuantizedPtr weight);
  std::string class_name() const override { return kClass; }
  bool is_4bit() const { return weight_->type() == ops::QuantizedType::kQUInt4x2; }
  int64_t rows() const { return weight_->sizes()[0]; }
  int64_t width() const { return weight_->sizes()[1]; }
  const ops::QuantizedPtr& weight() const { return weight_; }

  // out += weight * row
  void add_row(int64_t row, float weight, float* out) const;

 private:
  const ops::QuantizedPtr weight_;
  Tensor values_;
  std::vector<float> scales_, biases_;
};
using EmbeddingParamsPtr = IntrusivePtr<EmbeddingParams>;

}  // namespace tensord::kernels
