#include "core/nn/layers/norms.h"

#include <utility>

#include "core/nn/init.h"
#include "core/ops/run.h"
#include "ops/norm.h"
#include "ops/pointwise.h"
#include "ops/pool.h"
#include "ops/view.h"

namespace tensord::nn {
namespace {

Tensor filled_if(bool is_there, const Dims& sizes, double value) {
  if (!is_there) return {};
  const Tensor tensor = Tensor::empty(sizes, DType::kFloat32);
  init::constant_(tensor, value);
  return tensor;
}

}  // namespace

GroupNorm::GroupNorm(int64_t groups, int64_t channels, double eps, bool is_affine)
    : Layer("GroupNorm"),
      weight(register_parameter("weight", filled_if(is_affine, {channels}, 1))),
      bias(register_parameter("bias", filled_if(is_affine, {channels}, 0))),
      groups_(groups),
      eps_(eps) {
  check(groups > 0 && channels % groups == 0, "num_channels must be divisible by num_groups");
}
Tensor GroupNorm::forward(const Tensor& input) { return ops::group_norm(input, groups_, weight, bias, eps_, false); }

InstanceNorm::InstanceNorm(int64_t features, double eps, bool is_affine)
    : Layer("InstanceNorm"),
      weight(register_parameter("weight", filled_if(is_affine, {features}, 1))),
      bias(register_parameter("bias", filled_if(is_affine, {features}, 0))),
      eps_(eps) {}
Tensor InstanceNorm::forward(const Tensor& input) {
  const Tensor none;
  return ops::instance_norm(input, weight, bias, std::nullopt, std::nullopt, true, 0.1, eps_, false);
}

InstanceNormOf::InstanceNormOf(std::string kind, int64_t dims, int64_t features, double eps, double momentum,
                               bool is_affine, bool tracks_statistics)
    : Layer(std::move(kind)),
      weight(register_parameter("weight", filled_if(is_affine, {features}, 1))),
      bias(register_parameter("bias", filled_if(is_affine, {features}, 0))),
      running_mean(register_buffer("running_mean", filled_if(tracks_statistics, {features}, 0))),
      running_var(register_buffer("running_var", filled_if(tracks_statistics, {features}, 1))),
      num_batches_tracked(
          register_buffer("num_batches_tracked", tracks_statistics ? Tensor::scalar<int64_t>(0) : Tensor())),
      dims_(dims),
      features_(features),
      eps_(eps),
      momentum_(momentum) {}
Tensor InstanceNormOf::forward(const Tensor& input) {
  const bool has_batch = input.ndim() == dims_ + 2;
  check(has_batch || input.ndim() == dims_ + 1, kind(), ": expected an input of ", dims_ + 1, " or ", dims_ + 2,
        " dimensions but got ", describe(input));
  check(input.size(has_batch ? 1 : 0) == features_, kind(), ": expected ", features_, " features but got ",
        describe(input));
  const Tensor x = has_batch ? input : ops::unsqueeze(input, 0);
  const Tensor out = ops::instance_norm(x, weight, bias, running_mean, running_var,
                                        is_training() || !running_mean.defined(), momentum_, eps_, false);
  return has_batch ? out : ops::squeeze(out, 0);
}

LocalResponseNorm::LocalResponseNorm(int64_t size, double alpha, double beta, double k)
    : Layer("LocalResponseNorm"), size_(size), alpha_(alpha), beta_(beta), k_(k) {
  check(size > 0, "LocalResponseNorm: size must be at least 1 but is ", size);
}
Tensor LocalResponseNorm::forward(const Tensor& input) {
  check(input.ndim() >= 3, "Expected 3D or higher dimensionality input (got ", input.ndim(), " dimensions)");
  if (input.numel() == 0) return input;
  // Channels as rows of an image; its columns are all later dimensions.
  const Tensor squares = ops::reshape(ops::mul(input, input), Dims{input.size(0), 1, input.size(1), -1});
  const Tensor padded = ops::pad(squares, Dims{0, 0, size_ / 2, (size_ - 1) / 2}, "constant", 0.0);
  const Tensor means = ops::avg_pool2d(padded, Dims{size_, 1}, Dims{1, 1});
  Tensor divisor = ops::reshape(means, input.sizes());
  divisor = ops::add(ops::mul(divisor, alpha_), k_);
  return ops::div(input, ops::pow(divisor, beta_));
}

RMSNorm::RMSNorm(SizeList normalized_shape, std::optional<double> eps, bool is_affine)
    : Layer("RMSNorm"),
      weight(register_parameter("weight", filled_if(is_affine, normalized_shape, 1))),
      normalized_shape_(std::move(normalized_shape)),
      eps_(eps) {}
Tensor RMSNorm::forward(const Tensor& input) { return ops::rms_norm(input, normalized_shape_, weight, eps_); }

PReLU::PReLU(int64_t parameters, double start)
    : Layer("PReLU"), weight(register_parameter("weight", filled_if(true, {parameters}, start))) {}
Tensor PReLU::forward(const Tensor& input) { return ops::prelu(input, weight); }

}  // namespace tensord::nn
