#include "core/nn/init.h"

#include <cmath>

#include "core/base/error.h"
#include "core/ops/run.h"
#include "core/tensor/grad_mode.h"
#include "ops/random.h"
#include "ops/view.h"

namespace tensord::nn::init {

double calculate_gain(Nonlinearity nonlinearity, double slope) {
  switch (nonlinearity) {
    case Nonlinearity::kLinear:
    case Nonlinearity::kSigmoid: return 1;
    case Nonlinearity::kTanh: return 5.0 / 3;
    case Nonlinearity::kRelu: return std::sqrt(2.0);
    case Nonlinearity::kLeakyRelu: return std::sqrt(2.0 / (1 + slope * slope));
    case Nonlinearity::kSelu: return 3.0 / 4;
  }
  fail(ErrorCode::kInvalidArgument, "unknown nonlinearity");
}

Fans fans_of(const Tensor& weight) {
  check(weight.ndim() >= 2, "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions");
  int64_t field = 1;
  for (int64_t d = 2; d < weight.ndim(); ++d) field *= weight.size(d);
  return {weight.size(1) * field, weight.size(0) * field};
}

void uniform_(const Tensor& tensor, double from, double to) {
  const NoGradGuard without_grad;
  ops::uniform_(tensor, from, to);
}
void normal_(const Tensor& tensor, double mean, double std) {
  const NoGradGuard without_grad;
  ops::normal_(tensor, mean, std);
}
void constant_(const Tensor& tensor, double value) {
  const NoGradGuard without_grad;
  ops::fill_(tensor, value);
}

void xavier_uniform_(const Tensor& weight, double gain) {
  const Fans fans = fans_of(weight);
  const double bound = std::sqrt(3.0) * gain * std::sqrt(2.0 / static_cast<double>(fans.in + fans.out));
  uniform_(weight, -bound, bound);
}
void xavier_normal_(const Tensor& weight, double gain) {
  const Fans fans = fans_of(weight);
  normal_(weight, 0, gain * std::sqrt(2.0 / static_cast<double>(fans.in + fans.out)));
}

namespace {

double kaiming_std(const Tensor& weight, double slope, FanMode mode, Nonlinearity nonlinearity) {
  const Fans fans = fans_of(weight);
  const auto fan = static_cast<double>(mode == FanMode::kFanIn ? fans.in : fans.out);
  return calculate_gain(nonlinearity, slope) / std::sqrt(fan);
}

}  // namespace

void kaiming_uniform_(const Tensor& weight, double slope, FanMode mode, Nonlinearity nonlinearity) {
  if (weight.numel() == 0) return;
  const double bound = std::sqrt(3.0) * kaiming_std(weight, slope, mode, nonlinearity);
  uniform_(weight, -bound, bound);
}
void kaiming_normal_(const Tensor& weight, double slope, FanMode mode, Nonlinearity nonlinearity) {
  if (weight.numel() == 0) return;
  normal_(weight, 0, kaiming_std(weight, slope, mode, nonlinearity));
}

}  // namespace tensord::nn::init
