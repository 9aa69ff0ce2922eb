#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/nn/module.h"

// Norms over groups, samples and last dimensions; batch norms and LayerNorm are in layers.h. And PReLU, the activation
// that learns.
namespace tensord::nn {

class GroupNorm final : public Layer {
 public:
  GroupNorm(int64_t groups, int64_t channels, double eps = 1e-5, bool is_affine = true);
  using Layer::forward;
  Tensor forward(const Tensor& input) override;
  const Tensor weight, bias;  // [channels] or undefined

 private:
  const int64_t groups_;
  const double eps_;
};

// Each sample and channel by its own mean and variance. No running statistics.
class InstanceNorm final : public Layer {
 public:
  explicit InstanceNorm(int64_t features, double eps = 1e-5, bool is_affine = false);
  using Layer::forward;
  Tensor forward(const Tensor& input) override;
  const Tensor weight, bias;  // [features] or undefined

 private:
  const double eps_;
};

class RMSNorm final : public Layer {
 public:
  // Without eps: the smallest step of the input's dtype.
  explicit RMSNorm(Dims normalized_shape, std::optional<double> eps = std::nullopt, bool is_affine = true);
  using Layer::forward;
  Tensor forward(const Tensor& input) override;
  const Tensor weight;

 private:
  const Dims normalized_shape_;
  const std::optional<double> eps_;
};

class PReLU final : public Layer {
 public:
  explicit PReLU(int64_t parameters = 1, double start = 0.25);
  using Layer::forward;
  Tensor forward(const Tensor& input) override;
  const Tensor weight;  // [parameters]
};

class Identity final : public Layer {
 public:
  Identity() : Layer("Identity") {}
  using Layer::forward;
  Tensor forward(const Tensor& input) override { return input; }
};

}  // namespace tensord::nn
