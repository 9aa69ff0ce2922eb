#include "kernels/detection/deform_conv.h"

#include "kernels/expr/compose.h"
#include "ops/factory.h"
#include "ops/linear.h"
#include "ops/pointwise.h"
#include "ops/view.h"

// torchvision's deform_conv2d: columns read where the offsets point, and a product.
namespace tensord::kernels {
namespace {

using ops::GradArgs;
using ops::KernelContext;
using ops::TensorMeta;
using ops::Value;

DeformGeometry geometry_of(const Tensor& input, const Tensor& offset, const Tensor& mask, bool use_mask,
                           const ops::IntList& kernel, const ops::IntList& stride, const ops::IntList& padding,
                           const ops::IntList& dilation, int64_t offset_groups) {
  constexpr int64_t kMax = 1 << 30;  // so that products of three of them do not overflow
  check(input.ndim() == 4 && offset.ndim() == 4, "deform_conv2d(): expected input and offset of 4 dimensions, but got ",
        input.ndim(), " and ", offset.ndim());
  check(input.dtype() == DType::kFloat32 || input.dtype() == DType::kFloat64, "deform_conv2d(): not implemented for ",
        name_of(input.dtype()));
  check(offset.dtype() == input.dtype() && (!use_mask || mask.dtype() == input.dtype()),
        "deform_conv2d(): input, offset and mask must have the same dtype");
  check(offset_groups > 0 && input.size(1) % offset_groups == 0, "deform_conv2d(): ", input.size(1),
        " channels are not a multiple of ", offset_groups, " offset groups");
  DeformGeometry g{{}, {}, {}, {}, {}, offset_groups};
  for (size_t d = 0; d < 2; ++d) {
    check(kernel[d] > 0 && kernel[d] < kMax, "deform_conv2d(): weight sizes must be positive, but got ", kernel[d]);
    check(stride[d] > 0 && stride[d] < kMax, "deform_conv2d(): strides must be positive, but got ", stride[d]);
    check(padding[d] >= 0 && padding[d] < kMax, "deform_conv2d(): padding must not be negative, but got ", padding[d]);
    check(dilation[d] > 0 && dilation[d] < kMax, "deform_conv2d(): dilations must be positive, but got ", dilation[d]);
    g.kernel[d] = kernel[d], g.stride[d] = stride[d], g.padding[d] = padding[d], g.dilation[d] = dilation[d];
    const int64_t reach = input.sizes()[d + 2] + 2 * padding[d] - (dilation[d] * (kernel[d] - 1) + 1);
    g.out[d] = reach < 0 ? 0 : reach / stride[d] + 1;
    check(g.out[d] > 0, "deform_conv2d(): the calculated output size is too small in dimension ", d + 2);
  }
  const auto check_places = [&](const Tensor& x, const char* name, int64_t channels) {
    const Dims expected{input.size(0), channels, g.out[0], g.out[1]};
    check(x.sizes() == expected, "deform_conv2d(): expected ", name, " of shape ", to_string(expected), ", but got ",
          x.sizes());
  };
  int64_t channels = 0;
  check(!__builtin_mul_overflow(g.taps(), 2 * offset_groups, &channels), "deform_conv2d(): the sizes overflow");
  check_places(offset, "offset", channels);
  if (use_mask) check_places(mask, "mask", channels / 2);
  return g;
}

TensorMeta columns_meta(const Tensor& input, const Tensor& offset, const Tensor& mask, bool use_mask,
                        const ops::IntList& kernel, const ops::IntList& stride, const ops::IntList& padding,
                        const ops::IntList& dilation, int64_t groups) {
  const DeformGeometry g = geometry_of(input, offset, mask, use_mask, kernel, stride, padding, dilation, groups);
  return {Dims{input.size(0), input.size(1) * g.taps(), g.places()}, input.dtype(), {}, input.device()};
}

OP("tensord::deform_columns")
    .infer(columns_meta)
    .gradient([](const GradArgs& args) -> std::vector<Tensor> {
      const auto& in = args.inputs;
      std::vector<Tensor> gradients(in.size());
      if (!args.grad_outputs[0].defined()) return gradients;
      const ops::Op& op = ops::get_op("tensord::deform_columns_backward");
      std::vector<Value> values{args.grad_outputs[0]};
      values.insert(values.end(), in.begin(), in.end());
      values.push_back(
          ops::make_list(ops::bool_type(), {args.needs(0), args.needs(1), args.needs(2) && in[3].to_bool()}));
      const std::vector<Value> results = ops::run(op, ops::bind(op, std::move(values)));
      for (size_t i = 0; i < 3; ++i) {
        if (results[i].is_tensor()) gradients[i] = results[i].to_tensor();
      }
      // The gradient of a mask that is not used is zeros, as in torchvision.
      if (args.needs(2) && !in[3].to_bool()) gradients[2] = ops::zeros_like(in[2].to_tensor());
      return gradients;
    })
    .saves("input, offset, mask");
IMPL("tensord::deform_columns", kCPU,
     [](const KernelContext&, const Tensor& input, const Tensor& offset, const Tensor& mask, bool use_mask,
        const ops::IntList& kernel, const ops::IntList& stride, const ops::IntList& padding,
        const ops::IntList& dilation, int64_t groups, Tensor& out) {
       if (out.numel() == 0) return;
       deform_columns(geometry_of(input, offset, mask, use_mask, kernel, stride, padding, dilation, groups),
                      input.contiguous(), offset.contiguous(), use_mask ? mask.contiguous() : Tensor(), out);
     });
OP("tensord::deform_columns_backward")
    .impl([](const Tensor& grad, const Tensor& input, const Tensor& offset, const Tensor& mask, bool use_mask,
             const ops::IntList& kernel, const ops::IntList& stride, const ops::IntList& padding,
             const ops::IntList& dilation, int64_t groups, const std::vector<bool>& wanted) -> ops::Returns {
      const TensorMeta meta = columns_meta(input, offset, mask, use_mask, kernel, stride, padding, dilation, groups);
      check(grad.sizes() == meta.sizes && grad.dtype() == meta.dtype,
            "deform_columns_backward(): expected a gradient of shape ", to_string(meta.sizes), ", but got ",
            grad.sizes());
      check(wanted.size() == 3 && (use_mask || !wanted[2]),
            "deform_columns_backward(): a gradient of no mask is wanted");
      const auto zeros = [&](const Tensor& like, bool is_wanted) {
        if (!is_wanted) return Tensor();
        if (input.is_meta()) return Tensor::meta(like.sizes(), like.dtype(), like.device());
        return Tensor(ops::zeros(like.sizes(), {.dtype = like.dtype(), .device = like.device()}));
      };
      const Tensor of_input = zeros(input, wanted[0]), of_offset = zeros(offset, wanted[1]),
                   of_mask = zeros(mask, wanted[2]);
      if (!input.is_meta() && grad.numel() > 0) {
        deform_columns_backward(geometry_of(input, offset, mask, use_mask, kernel, stride, padding, dilation, groups),
                                grad.contiguous(), input.contiguous(), offset.contiguous(),
                                use_mask ? mask.contiguous() : Tensor(), of_input, of_offset, of_mask);
      }
      return {{of_input, of_offset, of_mask}};
    });

Tensor deform_conv2d(const Tensor& input, const Tensor& weight, const Tensor& offset, const Tensor& mask,
                     const Tensor& bias, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w,
                     int64_t dilation_h, int64_t dilation_w, int64_t groups, int64_t offset_groups, bool use_mask) {
  check(weight.ndim() == 4 && input.ndim() == 4, "deform_conv2d(): expected input and weight of 4 dimensions, but got ",
        input.ndim(), " and ", weight.ndim());
  const int64_t out_channels = weight.size(0), batch = input.size(0);
  check(groups > 0 && input.size(1) == weight.size(1) * groups, "deform_conv2d(): input of ", input.size(1),
        " channels does not fit a weight of shape ", weight.sizes(), " in ", groups, " groups");
  check(out_channels % groups == 0, "deform_conv2d(): ", out_channels, " channels of the result are not a multiple of ",
        groups, " groups");
  check(bias.ndim() == 1 && bias.size(0) == out_channels, "deform_conv2d(): expected a bias of shape [", out_channels,
        "], but got ", bias.sizes());
  const ops::IntList kernel{weight.size(2), weight.size(3)}, stride{stride_h, stride_w}, padding{pad_h, pad_w},
      dilation{dilation_h, dilation_w};
  const DeformGeometry g = geometry_of(input, offset, mask, use_mask, kernel, stride, padding, dilation, offset_groups);
  const ops::Op& columns_op = ops::get_op("tensord::deform_columns");
  const Tensor columns =
      ops::run(columns_op, ops::bind(columns_op, {input, offset, mask, use_mask, ops::make_int_list(kernel),
                                                  ops::make_int_list(stride), ops::make_int_list(padding),
                                                  ops::make_int_list(dilation), offset_groups}))[0]
          .to_tensor();
  const int64_t rows = weight.size(1) * g.taps();
  const Tensor product = ops::matmul(ops::reshape(weight, Dims{1, groups, out_channels / groups, rows}),
                                     ops::reshape(columns, Dims{batch, groups, rows, g.places()}));
  return ops::add(ops::reshape(product, Dims{batch, out_channels, g.out[0], g.out[1]}),
                  ops::reshape(bias, Dims{1, out_channels, 1, 1}));
}
OP("torchvision::deform_conv2d").impl(deform_conv2d).composite();

}  // namespace
}  // namespace tensord::kernels
