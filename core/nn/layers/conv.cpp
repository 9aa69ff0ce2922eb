#include "core/nn/layers/conv.h"

#include <cmath>
#include <utility>

#include "core/nn/init.h"
#include "core/ops/run.h"

namespace tensord::nn {
namespace {

Dims repeated(const Dims& given, size_t dims, int64_t missing, const char* what) {
  if (given.empty()) return Dims(dims, missing);
  if (given.size() == 1) return Dims(dims, given[0]);
  check(given.size() == dims, what, ": expected ", dims, " numbers but got ", given.size());
  return given;
}

Tensor make_weight(size_t dims, bool is_transposed, int64_t in, int64_t out, const Dims& kernel, int64_t groups) {
  check(groups > 0, "groups must be a positive integer");
  check(in % groups == 0, "in_channels must be divisible by groups");
  check(out % groups == 0, "out_channels must be divisible by groups");
  Dims sizes = is_transposed ? Dims{in, out / groups} : Dims{out, in / groups};
  for (const int64_t size : repeated(kernel, dims, 1, "kernel_size")) sizes.push_back(size);
  return Tensor::empty(sizes, DType::kFloat32);
}

const char* op_name(size_t dims, bool is_transposed) {
  static constexpr const char* kPlain[] = {"aten::conv1d", "aten::conv2d", "aten::conv3d"};
  static constexpr const char* kTransposed[] = {"aten::conv_transpose1d", "aten::conv_transpose2d.input",
                                                "aten::conv_transpose3d.input"};
  return (is_transposed ? kTransposed : kPlain)[dims - 1];
}

}  // namespace

Convolution::Convolution(std::string kind, size_t dims, bool is_transposed, int64_t in_channels, int64_t out_channels,
                         const Dims& kernel_size, const ConvOptions& options)
    : Layer(std::move(kind)),
      weight(register_parameter(
          "weight", make_weight(dims, is_transposed, in_channels, out_channels, kernel_size, options.groups))),
      bias(
          register_parameter("bias", options.has_bias ? Tensor::empty(Dims{out_channels}, DType::kFloat32) : Tensor())),
      dims_(dims),
      is_transposed_(is_transposed),
      options_(options) {
  options_.stride = repeated(options.stride, dims, 1, "stride");
  options_.padding = repeated(options.padding, dims, 0, "padding");
  options_.dilation = repeated(options.dilation, dims, 1, "dilation");
  check(is_transposed || options.output_padding.empty(), "output_padding: only of transposed convolutions");
  options_.output_padding = repeated(options.output_padding, dims, 0, "output_padding");
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  const int64_t fan_in = init::fans_of(weight).in;
  if (!bias.defined() || fan_in == 0) return;
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  init::uniform_(bias, -bound, bound);
}

Tensor Convolution::forward(const Tensor& input) {
  const char* op = op_name(dims_, is_transposed_);
  const Dims &stride = options_.stride, &padding = options_.padding, &dilation = options_.dilation;
  if (!is_transposed_) return ops::call_by_name(op, input, weight, bias, stride, padding, dilation, options_.groups);
  const Dims& output_padding = options_.output_padding;
  return ops::call_by_name(op, input, weight, bias, stride, padding, output_padding, options_.groups, dilation);
}

}  // namespace tensord::nn
