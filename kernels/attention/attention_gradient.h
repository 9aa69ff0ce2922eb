#pragma once

#include <optional>
#include <vector>

#include "core/ops/op.h"

namespace tensord::kernels {

// Attention as a composition of plain operators: for dtypes without a kernel, for gradients, and in training.
struct PlainAttention {
  Tensor query, key, value;  // (…, rows, width)
  std::optional<Tensor> mask;
  double scale = 1;
  std::optional<double> fill;  // if set, the mask is a bool, and scores become `fill` where it is `fills_where`
  bool fills_where = true;
  bool is_causal = false;
  bool is_safe = false;  // a row whose scores are all minus infinity is zero
  double dropout = 0;    // of tensord::attention_training; weights() are those before it

  // True where the mask hides a score. REQUIRES: mask and fill.
  Tensor hidden() const;
  // softmax(scale * query @ key^T, masked).
  Tensor weights() const;
};

// The gradient of tensord::attention.
std::vector<Tensor> gradient_of_attention(const ops::GradArgs& args);
// The gradient of tensord::attention_training.
std::vector<Tensor> gradient_of_attention_training(const ops::GradArgs& args);

// Whether tensord::attention_training and tensord::attention_backward have a kernel for these tensors.
bool has_attention_backward(const Tensor& query);

}  // namespace tensord::kernels
