#include "core/nn/layers/pooling.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/ops/run.h"
#include "ops/pointwise.h"
#include "ops/pool.h"
#include "ops/random.h"
#include "ops/view.h"

namespace tensord::nn {
namespace {

using ops::Value;

Dims repeated_window(const std::string& kind, const Dims& given, size_t dims, const char* what) {
  if (given.size() == 1) return Dims(dims, given[0]);
  check(given.size() == dims, kind, ": ", what, ": expected ", dims, " numbers but got ", given.size());
  return given;
}

// Checks for an optional batch, channels, and `dims` more dimensions.
void check_rank(const std::string& kind, const Tensor& input, size_t dims) {
  const auto rank = static_cast<size_t>(input.ndim());
  check(rank == dims + 1 || rank == dims + 2, kind, ": expected an input of ", dims + 1, " or ", dims + 2,
        " dimensions but got ", describe(input));
}

}  // namespace

LPPool::LPPool(std::string kind, size_t dims, double norm_type, const Dims& kernel_size, const Dims& stride,
               bool ceil_mode)
    : Layer(std::move(kind)),
      dims_(dims),
      norm_type_(norm_type),
      kernel_size_(repeated_window(this->kind(), kernel_size, dims, "kernel_size")),
      stride_(stride.empty() ? kernel_size_ : repeated_window(this->kind(), stride, dims, "stride")),
      ceil_mode_(ceil_mode) {
  check(norm_type != 0, this->kind(), ": norm_type must not be 0");
}
Tensor LPPool::forward(const Tensor& input) {
  int64_t window = 1;
  for (const int64_t size : kernel_size_) window *= size;
  const Tensor powers = ops::pow(input, norm_type_);
  const Dims none(dims_, 0);
  const Tensor means = dims_ == 1   ? ops::avg_pool1d(powers, kernel_size_, stride_, none, ceil_mode_)
                       : dims_ == 2 ? ops::avg_pool2d(powers, kernel_size_, stride_, none, ceil_mode_)
                                    : ops::avg_pool3d(powers, kernel_size_, stride_, none, ceil_mode_);
  const Tensor sums = ops::mul(ops::sign(means), ops::relu(ops::abs(means)));
  return ops::pow(ops::mul(sums, window), 1 / norm_type_);
}

FractionalMaxPool::FractionalMaxPool(std::string kind, size_t dims, const Dims& kernel_size, const Dims& output_size,
                                     const std::vector<double>& output_ratio)
    : Layer(std::move(kind)),
      dims_(dims),
      kernel_size_(repeated_window(this->kind(), kernel_size, dims, "kernel_size")),
      output_size_(output_size.empty() ? Dims{} : repeated_window(this->kind(), output_size, dims, "output_size")),
      output_ratio_(output_ratio.size() == 1 ? std::vector<double>(dims, output_ratio[0]) : output_ratio) {
  check(output_size_.empty() != output_ratio_.empty(), this->kind(), ": output_size or output_ratio is needed");
  check(output_ratio_.empty() || output_ratio_.size() == dims, this->kind(), ": output_ratio: expected ", dims,
        " numbers but got ", output_ratio_.size());
  for (const double ratio : output_ratio_)
    check(ratio > 0 && ratio < 1, this->kind(), ": output_ratio must be between 0 and 1 but is ", ratio);
}
Tensor FractionalMaxPool::forward(const Tensor& input) {
  check_rank(kind(), input, dims_);
  const auto dims = static_cast<int64_t>(dims_);
  Dims to = output_size_;
  for (size_t d = 0; d < output_ratio_.size(); ++d)
    to.push_back(
        static_cast<int64_t>(static_cast<double>(input.size(static_cast<int64_t>(d) - dims)) * output_ratio_[d]));
  const int64_t batch = input.ndim() == dims + 2 ? input.size(0) : 1;
  const Dims samples{batch, input.size(-dims - 1), dims};
  const Tensor places = ops::rand(samples, {.dtype = input.dtype(), .device = input.device()});
  if (dims_ == 2) return std::get<0>(ops::fractional_max_pool2d(input, kernel_size_, to, places));
  return std::get<0>(ops::fractional_max_pool3d(input, kernel_size_, to, places));
}

MaxUnpool::MaxUnpool(std::string kind, size_t dims, const Dims& kernel_size, const Dims& stride, const Dims& padding)
    : Module(std::move(kind)),
      dims_(dims),
      kernel_size_(repeated_window(this->kind(), kernel_size, dims, "kernel_size")),
      stride_(stride.empty() ? kernel_size_ : repeated_window(this->kind(), stride, dims, "stride")),
      padding_(repeated_window(this->kind(), padding, dims, "padding")) {}
Tensors MaxUnpool::forward(const Tensors& inputs) {
  check(inputs.size() == 2, kind(), ": expected values and indices but got ", inputs.size(), " tensors");
  check_rank(kind(), inputs[0], dims_);
  Dims to;
  for (size_t d = 0; d < dims_; ++d) {
    const int64_t size = inputs[0].size(static_cast<int64_t>(d) - static_cast<int64_t>(dims_));
    to.push_back((size - 1) * stride_[d] + kernel_size_[d] - 2 * padding_[d]);
  }
  return {unpool(inputs[0], inputs[1], to)};
}
Tensor MaxUnpool::unpool(const Tensor& input, const Tensor& indices, const Dims& output_size) const {
  check_rank(kind(), input, dims_);
  check(output_size.size() == dims_, kind(), ": output_size: expected ", dims_, " numbers but got ",
        output_size.size());
  if (dims_ == 3) return ops::max_unpool3d(input, indices, output_size, stride_, padding_);
  if (dims_ == 2) return ops::max_unpool2d(input, indices, output_size);
  const auto column = [](const Tensor& x) { return ops::unsqueeze(x, -1); };
  return ops::squeeze(ops::max_unpool2d(column(input), column(indices), Dims{output_size[0], 1}), -1);
}

Upsample::Upsample(UpsampleOptions options) : Upsample("Upsample", std::move(options)) {}
Upsample::Upsample(std::string kind, UpsampleOptions options) : Layer(std::move(kind)), options_(std::move(options)) {
  static constexpr std::string_view kModes[] = {"nearest",  "nearest-exact", "linear",
                                                "bilinear", "bicubic",       "trilinear"};
  check(std::find(std::begin(kModes), std::end(kModes), options_.mode) != std::end(kModes), this->kind(), ": no mode '",
        options_.mode, "'");
  check(options_.size.empty() != options_.scale_factor.empty(), this->kind(), ": size or scale_factor is needed");
  check(!options_.align_corners || !options_.mode.starts_with("nearest"), this->kind(),
        ": align_corners does not go with the mode ", options_.mode);
}
Tensor Upsample::forward(const Tensor& input) {
  const int64_t rank = input.ndim();
  check(rank >= 3 && rank <= 5, kind(), ": expected an input of 3, 4 or 5 dimensions but got ", describe(input));
  const auto dims = static_cast<size_t>(rank - 2);
  const std::string& mode = options_.mode;
  const bool is_nearest = mode.starts_with("nearest");
  const size_t wanted = mode == "linear" ? 1 : mode == "trilinear" ? 3 : 2;
  check(is_nearest || wanted == dims, kind(), ": the mode ", mode, " does not go with ", describe(input));
  std::vector<double> factors = options_.scale_factor;
  if (factors.size() == 1) factors.assign(dims, factors[0]);
  check(factors.empty() || factors.size() == dims, kind(), ": scale_factor: expected ", dims, " numbers but got ",
        factors.size());
  const Value size =
      options_.size.empty() ? Value() : ops::make_int_list(repeated_window(kind(), options_.size, dims, "size"));
  std::vector<Value> listed(factors.begin(), factors.end());
  const Value scales = factors.empty() ? Value() : Value(ops::make_list(ops::float_type(), std::move(listed)));
  const std::string start = mode == "nearest-exact" ? "aten::_upsample_nearest_exact" : "aten::upsample_" + mode;
  const std::string op = concat(start, dims, "d.vec");
  if (is_nearest) return ops::call_by_name(op.c_str(), input, size, scales);
  return ops::call_by_name(op.c_str(), input, size, options_.align_corners, scales);
}

}  // namespace tensord::nn
