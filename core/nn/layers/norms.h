#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/nn/layers/size_list.h"
#include "core/nn/module.h"

// Norms over groups, samples and last dimensions, and PReLU. Batch norms and LayerNorm are in layers.h.
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

// Normalizes each sample and channel by its own mean and variance. No running statistics.
class InstanceNorm final : public Layer {
 public:
  explicit InstanceNorm(int64_t features, double eps = 1e-5, bool is_affine = false);
  using Layer::forward;
  Tensor forward(const Tensor& input) override;
  const Tensor weight, bias;  // [features] or undefined

 private:
  const double eps_;
};

// Inputs [N, features, …], or [features, …] without a batch; `dims` is the number of dimensions after the features.
class InstanceNormOf : public Layer {
 public:
  using Layer::forward;
  Tensor forward(const Tensor& input) override;
  const Tensor weight, bias;                                    // [features] or undefined
  const Tensor running_mean, running_var, num_batches_tracked;  // undefined unless it tracks statistics

 protected:
  InstanceNormOf(std::string kind, int64_t dims, int64_t features, double eps, double momentum, bool is_affine,
                 bool tracks_statistics);

 private:
  const int64_t dims_, features_;
  const double eps_, momentum_;
};
#define TENSORD_INSTANCE_NORM(DIMS)                                                                                    \
  struct InstanceNorm##DIMS##d final : InstanceNormOf {                                                                \
    explicit InstanceNorm##DIMS##d(int64_t features, double eps = 1e-5, double momentum = 0.1, bool is_affine = false, \
                                   bool tracks_statistics = false)                                                     \
        : InstanceNormOf("InstanceNorm" #DIMS "d", DIMS, features, eps, momentum, is_affine, tracks_statistics) {}     \
  };
TENSORD_INSTANCE_NORM(1)
TENSORD_INSTANCE_NORM(2)
TENSORD_INSTANCE_NORM(3)
#undef TENSORD_INSTANCE_NORM

// Over `size` neighboring channels.
class LocalResponseNorm final : public Layer {
 public:
  explicit LocalResponseNorm(int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);
  using Layer::forward;
  Tensor forward(const Tensor& input) override;

 private:
  const int64_t size_;
  const double alpha_, beta_, k_;
};

class RMSNorm final : public Layer {
 public:
  TENSORD_LIST_ALONE(RMSNorm)
  // Without eps: the smallest step of the input's dtype.
  explicit RMSNorm(SizeList normalized_shape, std::optional<double> eps = std::nullopt, bool is_affine = true);
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
