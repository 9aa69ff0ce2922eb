#include "core/nn/norms.h"

#include <utility>

#include "core/nn/init.h"
#include "core/ops/run.h"

namespace tensord::nn {
namespace {

Tensor filled(bool is_there, const Dims& sizes, double value) {
  if (!is_there) return {};
  const Tensor tensor = Tensor::empty(sizes, DType::kFloat32);
  init::constant_(tensor, value);
  return tensor;
}

}  // namespace

GroupNorm::GroupNorm(int64_t groups, int64_t channels, double eps, bool is_affine)
    : Layer("GroupNorm"),
      weight(register_parameter("weight", filled(is_affine, {channels}, 1))),
      bias(register_parameter("bias", filled(is_affine, {channels}, 0))),
      groups_(groups),
      eps_(eps) {
  check(groups > 0 && channels % groups == 0, "num_channels must be divisible by num_groups");
}
Tensor GroupNorm::forward(const Tensor& input) {
  return ops::call("aten::group_norm", input, groups_, weight, bias, eps_, false);
}

InstanceNorm::InstanceNorm(int64_t features, double eps, bool is_affine)
    : Layer("InstanceNorm"),
      weight(register_parameter("weight", filled(is_affine, {features}, 1))),
      bias(register_parameter("bias", filled(is_affine, {features}, 0))),
      eps_(eps) {}
Tensor InstanceNorm::forward(const Tensor& input) {
  const Tensor none;
  return ops::call("aten::instance_norm", input, weight, bias, none, none, true, 0.1, eps_, false);
}

RMSNorm::RMSNorm(Dims normalized_shape, std::optional<double> eps, bool is_affine)
    : Layer("RMSNorm"),
      weight(register_parameter("weight", filled(is_affine, normalized_shape, 1))),
      normalized_shape_(std::move(normalized_shape)),
      eps_(eps) {}
Tensor RMSNorm::forward(const Tensor& input) {
  return ops::call("aten::rms_norm", input, normalized_shape_, weight, eps_);
}

PReLU::PReLU(int64_t parameters, double start)
    : Layer("PReLU"), weight(register_parameter("weight", filled(true, {parameters}, start))) {}
Tensor PReLU::forward(const Tensor& input) { return ops::call("aten::prelu", input, weight); }

}  // namespace tensord::nn
