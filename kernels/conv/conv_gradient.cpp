// Gradients of convolutions: aten::convolution_backward, and its own gradient.
#include "kernels/conv/conv_gradient.h"

#include "core/ops/attributes/may_lack_results.h"
#include "core/ops/run.h"
#include "core/tensor/device_copy.h"
#include "ops/conv.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::GradArgs;
using ops::IntList;
using ops::Value;

Value bools(const std::array<bool, 3>& values) {
  return ops::make_list(ops::bool_type(), {Value(values[0]), Value(values[1]), Value(values[2])});
}

// The arguments of a convolution after its tensors.
struct Lists {
  Dims stride, padding, dilation;
  bool is_transposed;
  Dims output_padding;
  int64_t groups;
};

Tensor convolve(const Tensor& input, const Tensor& weight, const Lists& l) {
  return ops::convolution(input, weight, std::nullopt, l.stride, l.padding, l.dilation, l.is_transposed,
                          l.output_padding, l.groups);
}

// The gradients that the mask asks for; the others are undefined.
std::array<Tensor, 3> backward(const Tensor& grad, const Tensor& input, const Tensor& weight, const Value& bias_sizes,
                               const Lists& l, const std::array<bool, 3>& mask) {
  static const ops::Op& op = ops::get_op("aten::convolution_backward");
  const std::vector<Value> results =
      ops::run(op, std::array<Value, 11>{grad, input, weight, bias_sizes, ops::make_int_list(l.stride),
                                         ops::make_int_list(l.padding), ops::make_int_list(l.dilation), l.is_transposed,
                                         ops::make_int_list(l.output_padding), l.groups, bools(mask)});
  std::array<Tensor, 3> out;
  for (size_t i = 0; i < 3; ++i) {
    if (results[i].is_tensor()) out[i] = results[i].to_tensor();
  }
  return out;
}

bool is_last_gradient(const Tensor& t) { return t.ndim() >= 4 && t.is_channels_last() && !t.is_contiguous(); }

Tensor allocate(const Tensor& like, const Dims& sizes, bool last) {
  const Dims strides = last ? channels_last_strides(sizes) : contiguous_strides(sizes);
  return like.is_meta() ? Tensor::meta_strided(sizes, strides, like.dtype(), like.device())
                        : Tensor::empty_strided(sizes, strides, like.dtype(), like.device());
}

// Tensors for the gradients that the mask asks for, without data where the inputs are meta tensors.
std::array<Tensor, 3> gradient_shapes(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                      const IntList& stride, const IntList& padding, const IntList& dilation,
                                      bool is_transposed, const IntList& output_padding, int64_t groups,
                                      const std::array<bool, 3>& mask) {
  check(weight.ndim() >= 3 && weight.ndim() <= 5, "expected a weight of 3 to 5 dimensions, but got ", weight.ndim());
  check(input.ndim() == weight.ndim(), "expected an input of ", weight.ndim(), " dimensions, but got ", input.ndim());
  const ConvGeometry g = make_conv_geometry(static_cast<size_t>(weight.ndim() - 2), stride, padding, dilation, groups,
                                            is_transposed, output_padding);
  const Dims sizes = conv_output_sizes("convolution_backward", input.sizes(), weight.sizes(), g);
  check(grad.sizes() == sizes, "expected a gradient of shape ", to_string(sizes), ", but got ", grad.sizes());
  check(grad.dtype() == input.dtype() && weight.dtype() == input.dtype(),
        "gradient, input and weight should have the same type, but got ", name_of(grad.dtype()), ", ",
        name_of(input.dtype()), " and ", name_of(weight.dtype()));
  const bool last = is_last_gradient(input) || is_last_gradient(weight);
  return {mask[0] ? allocate(input, input.sizes(), last) : Tensor(),
          mask[1] ? allocate(input, weight.sizes(), is_last_gradient(weight)) : Tensor(),
          mask[2] ? allocate(input, Dims{sizes[1]}, false) : Tensor()};
}

void fill_gradients(const ConvGeometry& g, const Tensor& grad, const Tensor& input, const Tensor& weight,
                    std::array<Tensor, 3>& out) {
  auto& [of_input, of_weight, of_bias] = out;
  if (grad.numel() > 0 && input.numel() > 0) {
    if (of_input) conv_input_gradient(g, grad, weight, of_input);
    if (of_weight) conv_weight_gradient(g, grad, input, of_weight, of_bias ? &of_bias : nullptr);
    if (of_bias && !of_weight) conv_bias_gradient(grad, of_bias);
    return;
  }
  for (const Tensor& t : out) {
    if (t) zero_elements(t);
  }
  if (of_bias && grad.numel() > 0) conv_bias_gradient(grad, of_bias);
}

ops::Returns convolution_backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                  const std::optional<IntList>& bias_sizes, const IntList& stride,
                                  const IntList& padding, const IntList& dilation, bool is_transposed,
                                  const IntList& output_padding, int64_t groups, const std::vector<bool>& mask) {
  check(mask.size() == 3, "expected an output_mask of 3 values");
  std::array<Tensor, 3> out = gradient_shapes(grad, input, weight, stride, padding, dilation, is_transposed,
                                              output_padding, groups, {mask[0], mask[1], mask[2]});
  if (mask[2]) check(!bias_sizes || *bias_sizes == out[2].sizes(), "expected a bias of ", out[2].numel(), " elements");
  if (!input.is_meta()) {
    const ConvGeometry g = make_conv_geometry(static_cast<size_t>(weight.ndim() - 2), stride, padding, dilation, groups,
                                              is_transposed, output_padding);
    fill_gradients(g, grad, input, weight, out);
  }
  return {{out[0], out[1], out[2]}};
}

// With a, b and c as gradients of input, weight and bias, each result is a convolution of two of the three.
std::vector<Tensor> gradient_of_backward(const GradArgs& args) {
  const auto& in = args.inputs;
  const Tensor &grad = in[0].to_tensor(), &input = in[1].to_tensor(), &weight = in[2].to_tensor();
  const Tensor &a = args.grad_outputs[0], &b = args.grad_outputs[1], &c = args.grad_outputs[2];
  const auto list = [&in](size_t i) { return ops::Unbox<IntList>::get(in[i]); };
  const Lists l{list(4), list(5), list(6), in[7].to_bool(), list(8), in[9].to_int()};
  std::vector<Tensor> out(11);
  if (args.needs(0)) {
    Tensor sum;
    const auto add = [&sum](const Tensor& t) { sum = sum ? ops::add(sum, t) : t; };
    if (a) add(convolve(a, weight, l));
    if (b) add(convolve(input, b, l));
    if (c) {
      Dims sizes(static_cast<size_t>(grad.ndim()), 1);
      sizes[1] = c.numel();
      add(ops::expand(ops::reshape(c, sizes), grad.sizes()));
    }
    out[0] = sum;
  }
  if (args.needs(1) && b) out[1] = backward(grad, input, b, Value(), l, {true, false, false})[0];
  if (args.needs(2) && a) out[2] = backward(grad, a, weight, Value(), l, {false, true, false})[1];
  return out;
}

OP("aten::convolution_backward")
    .set<ops::MayLackResults>()
    .impl(&convolution_backward)
    .gradient(&gradient_of_backward)
    .saves("grad_output, input, weight");

// Operators that return one gradient each: in plans every result is a tensor.
template <bool INPUT, bool WEIGHT, bool BIAS>
void add_part(const char* name) {
  const auto run = [](const Tensor& grad, const Tensor& input, const Tensor& weight, const IntList& stride,
                      const IntList& padding, const IntList& dilation, bool is_transposed,
                      const IntList& output_padding, int64_t groups, std::array<Tensor, 3> out) {
    const ConvGeometry g = make_conv_geometry(static_cast<size_t>(weight.ndim() - 2), stride, padding, dilation, groups,
                                              is_transposed, output_padding);
    fill_gradients(g, grad, input, weight, out);
  };
  ops::OpBuilder(name, __FILE__, __LINE__)
      .infer([](const Tensor& grad, const Tensor& input, const Tensor& weight, const IntList& stride,
                const IntList& padding, const IntList& dilation, bool is_transposed, const IntList& output_padding,
                int64_t groups) {
        std::vector<ops::TensorMeta> metas;
        const auto found = gradient_shapes(grad, input, weight, stride, padding, dilation, is_transposed,
                                           output_padding, groups, {INPUT, WEIGHT, BIAS});
        for (const Tensor& t : found) {
          if (t) metas.push_back({t.sizes(), t.dtype(), t.strides(), t.device()});
        }
        return metas;
      });
  if constexpr (WEIGHT && BIAS) {
    ops::ImplBuilder(name, DeviceKind::kCPU,
                     [run](const ops::KernelContext&, const Tensor& grad, const Tensor& input, const Tensor& weight,
                           const IntList& stride, const IntList& padding, const IntList& dilation, bool is_transposed,
                           const IntList& output_padding, int64_t groups, Tensor& of_weight, Tensor& of_bias) {
                       run(grad, input, weight, stride, padding, dilation, is_transposed, output_padding, groups,
                           {Tensor(), of_weight, of_bias});
                     });
  } else {
    ops::ImplBuilder(name, DeviceKind::kCPU,
                     [run](const ops::KernelContext&, const Tensor& grad, const Tensor& input, const Tensor& weight,
                           const IntList& stride, const IntList& padding, const IntList& dilation, bool is_transposed,
                           const IntList& output_padding, int64_t groups, Tensor& out) {
                       run(grad, input, weight, stride, padding, dilation, is_transposed, output_padding, groups,
                           {INPUT ? out : Tensor(), WEIGHT ? out : Tensor(), BIAS ? out : Tensor()});
                     });
  }
}
[[maybe_unused]] const bool has_parts = [] {
  add_part<true, false, false>("tensord::conv_input_gradient");
  add_part<false, true, false>("tensord::conv_weight_gradient");
  add_part<false, false, true>("tensord::conv_bias_gradient");
  add_part<false, true, true>("tensord::conv_weight_bias_gradient");
  return true;
}();

// The pairs of a padding list, last dimension first.
Dims pad_list(const ConvGeometry& g, int64_t sign) {
  Dims out;
  for (size_t i = g.spatial(); i-- > 0;) {
    out.push_back(sign * g.padding_low[i]);
    out.push_back(sign * g.padding_high[i]);
  }
  return out;
}

}  // namespace

std::vector<Tensor> conv_gradient(const GradArgs& args, const ConvGeometry& g) {
  Tensor input = args.inputs[0].to_tensor(), grad = args.grad_outputs[0];
  const Tensor& weight = args.inputs[1].to_tensor();
  const bool has_batch = static_cast<size_t>(input.ndim()) == g.spatial() + 2;
  if (!has_batch) {
    input = ops::unsqueeze(input, 0);
    grad = ops::unsqueeze(grad, 0);
  }
  // Padding that differs between the two ends is added to the input first.
  const bool is_uneven = !(g.padding_low == g.padding_high);
  if (is_uneven) input = ops::constant_pad_nd(input, pad_list(g, 1), ops::Scalar(0));
  const Lists lists{g.stride,         is_uneven ? Dims(g.spatial(), 0) : g.padding_low,
                    g.dilation,       g.is_transposed,
                    g.output_padding, g.groups};
  const bool has_bias = args.inputs[2].is_tensor();
  const Value bias_sizes = has_bias ? ops::make_int_list(args.inputs[2].to_tensor().sizes()) : Value();
  std::array<Tensor, 3> found =
      backward(grad, input, weight, bias_sizes, lists, {args.needs(0), args.needs(1), has_bias && args.needs(2)});
  if (found[0] && is_uneven) found[0] = ops::constant_pad_nd(found[0], pad_list(g, -1), ops::Scalar(0));
  if (found[0] && !has_batch) found[0] = ops::squeeze(found[0], 0);
  std::vector<Tensor> out(args.inputs.size());
  std::copy(found.begin(), found.end(), out.begin());
  return out;
}

}  // namespace tensord::kernels
