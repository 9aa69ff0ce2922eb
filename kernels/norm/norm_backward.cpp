// The backward of layer_norm and group_norm. Computes mean and deviation again when the call does not have them: the
// row is read anyway, and is in the cache then.
#include "kernels/norm/norm_backward.h"

#include <algorithm>
#include <vector>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/norm/norm_gradient.h"
#include "ops/view.h"

namespace tensord::kernels {

int64_t normalized_length(const Tensor& x, const Dims& shape) {
  const size_t ndim = x.sizes().size();
  check(!shape.empty() && ndim >= shape.size(), "normalized_shape does not fit the input");
  int64_t length = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    check(x.sizes()[ndim - shape.size() + i] == shape[i], "normalized_shape does not fit the input");
    length *= shape[i];
  }
  return length;
}

namespace {

using ops::IntList;
using ops::TensorMeta;
using ops::Value;
using Mask = std::vector<bool>;
using MaybeTensor = std::optional<Tensor>;

// Results that are not asked for are empty.
std::vector<TensorMeta> infer_norm_backward(const Tensor& g, const Tensor& x, const Dims& parameter, DType dtype,
                                            const Mask& mask) {
  check(g.sizes() == x.sizes(), "the gradient is of size ", g.sizes(), ", the input of ", x.sizes());
  check(mask.size() == 3, "output_mask must have 3 items");
  if (!is_floating(x.dtype())) fail_dtype("norm_backward", x.dtype());
  const Dims none{0};
  return {{mask[0] ? x.sizes() : none, x.dtype(), {}, x.device()},
          {mask[1] ? parameter : none, dtype, {}, x.device()},
          {mask[2] ? parameter : none, dtype, {}, x.device()}};
}

// --- layer_norm

Dims last_dims(const Tensor& x, size_t count) {
  Dims dims;
  for (size_t d = x.sizes().size() - count; d < x.sizes().size(); ++d) dims.push_back(static_cast<int64_t>(d));
  return dims;
}

MaybeTensor maybe(const Value& value) { return value.is_tensor() ? MaybeTensor(value.to_tensor()) : std::nullopt; }
// A gradient for `input`, if there is one.
Value fitted(const Tensor& gradient, const Value& input) {
  return gradient.defined() && input.is_tensor() ? Value(gradient::fit_gradient(gradient, input.to_tensor())) : Value();
}

// `weight` and `mean` are positions of arguments, or -1; 3 and 4 follow in the schema.
std::vector<Value> layer_backward_gradient(const ops::GradArgs& args, size_t weight, bool has_moments) {
  NormBackward backward;
  backward.g = args.inputs[0].to_tensor();
  backward.x = args.inputs[1].to_tensor();
  backward.weight = maybe(args.inputs[weight]);
  backward.dims = last_dims(backward.x, args.inputs[2].to_list()->items.size());
  if (has_moments) {
    backward.mean = args.inputs[3].to_tensor();
    backward.rstd = args.inputs[4].to_tensor();
  } else {
    backward.eps = args.inputs[4].to_float();
  }
  backward.to_dx = args.grad_outputs[0];
  backward.to_dweight = args.grad_outputs[1];
  backward.to_dbias = args.grad_outputs[2];
  const NormBackwardGradients gradients = differentiate(backward);
  std::vector<Value> out(args.inputs.size());
  out[0] = fitted(gradients.g, args.inputs[0]);
  out[1] = fitted(gradients.x, args.inputs[1]);
  out[weight] = fitted(gradients.weight, args.inputs[weight]);
  return out;
}

OP("tensord::layer_norm_backward")
    .infer([](const Tensor& g, const Tensor& x, const IntList& shape, MaybeTensor weight, double, const Mask& mask) {
      normalized_length(x, shape);
      return infer_norm_backward(g, x, shape, weight ? weight->dtype() : x.dtype(), mask);
    })
    .gradient([](const ops::GradArgs& args) { return layer_backward_gradient(args, 3, false); })
    .saves("grad_out, input, weight");

OP("tensord::native_layer_norm_backward")
    .infer([](const Tensor& g, const Tensor& x, const IntList& shape, const Tensor& mean, const Tensor& rstd,
              MaybeTensor weight, MaybeTensor, const Mask& mask) {
      const int64_t length = normalized_length(x, shape), rows = x.numel() / std::max<int64_t>(1, length);
      check(x.numel() == 0 || (mean.numel() == rows && rstd.numel() == rows), "mean and rstd must have ", rows,
            " elements, got ", mean.numel(), " and ", rstd.numel());
      return infer_norm_backward(g, x, shape, weight ? weight->dtype() : x.dtype(), mask);
    })
    .gradient([](const ops::GradArgs& args) { return layer_backward_gradient(args, 5, true); })
    .saves("grad_out, input, mean, rstd, weight");

// --- group_norm

// The groups become dimension 1; their channels and the rest become 2 and 3.
std::vector<Value> group_backward_gradient(const ops::GradArgs& args, size_t weight, int64_t groups, bool has_moments) {
  const Tensor& x = args.inputs[1].to_tensor();
  const int64_t batch = x.sizes()[0], per_group = x.sizes()[1] / groups;
  const Dims grouped{batch, groups, per_group, x.numel() / std::max<int64_t>(1, batch * x.sizes()[1])},
      parameter{1, groups, per_group, 1}, moments{batch, groups, 1, 1};
  const auto shaped = [](const Tensor& t, const Dims& sizes) { return t.defined() ? ops::reshape(t, sizes) : t; };
  NormBackward backward;
  backward.g = shaped(args.inputs[0].to_tensor(), grouped);
  backward.x = shaped(x, grouped);
  if (args.inputs[weight].is_tensor()) backward.weight = shaped(args.inputs[weight].to_tensor(), parameter);
  backward.dims = Dims{2, 3};
  if (has_moments) {
    backward.mean = shaped(args.inputs[2].to_tensor(), moments);
    backward.rstd = shaped(args.inputs[3].to_tensor(), moments);
  } else {
    backward.eps = args.inputs[4].to_float();
  }
  backward.to_dx = shaped(args.grad_outputs[0], grouped);
  backward.to_dweight = shaped(args.grad_outputs[1], parameter);
  backward.to_dbias = shaped(args.grad_outputs[2], parameter);
  const NormBackwardGradients gradients = differentiate(backward);
  std::vector<Value> out(args.inputs.size());
  out[0] = fitted(shaped(gradients.g, x.sizes()), args.inputs[0]);
  out[1] = fitted(shaped(gradients.x, x.sizes()), args.inputs[1]);
  if (gradients.weight.defined()) {
    const Tensor summed = gradient::fit_gradient(gradients.weight, Tensor::meta(parameter, x.dtype()));
    out[weight] = fitted(shaped(summed, Dims{x.sizes()[1]}), args.inputs[weight]);
  }
  return out;
}

OP("tensord::group_norm_backward")
    .infer([](const Tensor& g, const Tensor& x, int64_t groups, MaybeTensor weight, double, const Mask& mask) {
      check(x.ndim() >= 2 && groups > 0 && x.sizes()[1] % groups == 0, "the channels cannot be cut into ", groups,
            " groups");
      return infer_norm_backward(g, x, Dims{x.sizes()[1]}, weight ? weight->dtype() : x.dtype(), mask);
    })
    .gradient([](const ops::GradArgs& args) {
      return group_backward_gradient(args, 3, args.inputs[2].to_int(), false);
    })
    .saves("grad_out, input, weight");

OP("tensord::native_group_norm_backward")
    .infer([](const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& rstd, MaybeTensor weight, int64_t n,
              int64_t c, int64_t inner, int64_t groups, const Mask& mask) {
      check(groups > 0 && inner >= 0 && c % groups == 0 && x.ndim() >= 2 && x.sizes()[0] == n && x.sizes()[1] == c &&
                x.numel() == n * c * inner,
            "the input is of size ", x.sizes(), ", expected ", n, ", ", c, " and ", inner);
      check(mean.numel() == n * groups && rstd.numel() == n * groups, "mean and rstd must have ", n * groups,
            " elements");
      return infer_norm_backward(g, x, Dims{c}, weight ? weight->dtype() : x.dtype(), mask);
    })
    .gradient([](const ops::GradArgs& args) { return group_backward_gradient(args, 4, args.inputs[8].to_int(), true); })
    .saves("grad_out, input, mean, rstd, weight");

}  // namespace
}  // namespace tensord::kernels
