// layer_norm and group_norm: schemas, shapes and gradients.
#include <optional>
#include <vector>

#include "core/ops/attributes/batch_independence.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/norm/norm_gradient.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using gradient::Expr;
using ops::IntList;
using ops::TensorMeta;
using MaybeTensor = std::optional<Tensor>;

void check_layer_norm(const Tensor& in, const IntList& shape, const MaybeTensor& weight, const MaybeTensor& bias) {
  check(!shape.empty(), "layer_norm: Expected normalized_shape to be at least 1-dimensional");
  const auto ndim = static_cast<size_t>(in.ndim());
  bool fits = ndim >= shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) fits = in.sizes()[ndim - shape.size() + i] == shape[i];
  check(fits, "layer_norm: Given normalized_shape=", to_string(shape),
        ", expected input with shape ending in it, but got input of size", in.sizes());
  check(!weight || weight->sizes() == shape,
        "layer_norm: Expected weight to be of same shape as normalized_shape, but got ",
        weight ? weight->sizes() : Dims{}, " and ", to_string(shape));
  check(!bias || bias->sizes() == shape, "layer_norm: Expected bias to be of same shape as normalized_shape, but got ",
        bias ? bias->sizes() : Dims{}, " and ", to_string(shape));
  if (!is_floating(in.dtype())) fail_dtype("layer_norm", in.dtype());
}

std::vector<ops::Value> layer_norm_gradient(const ops::GradArgs& args) {
  return norm_gradients(args, {0, 2, 3}, "tensord::layer_norm_backward",
                        {args.grad_outputs[0], args.inputs[0], args.inputs[1], args.inputs[2], args.inputs[4]});
}
// Uses the mean and the deviation that the forward returned.
std::vector<ops::Value> native_layer_norm_gradient(const ops::GradArgs& args) {
  return norm_gradients(args, {0, 2, 3}, "tensord::native_layer_norm_backward",
                        {args.grad_outputs[0], args.inputs[0], args.inputs[1], args.outputs[1], args.outputs[2],
                         args.inputs[2], args.inputs[3]});
}

OP("aten::layer_norm")
    .set<ops::BatchIndependent>([](std::span<const ops::Value> v) {
      return v[1].is_list() && v[0].to_tensor().ndim() > static_cast<int64_t>(v[1].to_list()->items.size());
    })
    .infer([](const Tensor& in, const IntList& shape, MaybeTensor weight, MaybeTensor bias, double, bool) {
      check_layer_norm(in, shape, weight, bias);
      return TensorMeta{in.sizes(), in.dtype(), {}, in.device()};
    })
    .gradient(layer_norm_gradient)
    .saves("input, weight")
    .reduction();

OP("aten::native_layer_norm")
    .infer([](const Tensor& in, const IntList& shape, MaybeTensor weight, MaybeTensor bias, double) {
      check_layer_norm(in, shape, weight, bias);
      Dims outer = in.sizes();
      for (size_t i = 0; i < shape.size(); ++i) outer[outer.size() - 1 - i] = 1;
      const DType stats = in.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
      return std::vector<TensorMeta>{
          {in.sizes(), in.dtype(), {}, in.device()}, {outer, stats, {}, in.device()}, {outer, stats, {}, in.device()}};
    })
    .gradient(native_layer_norm_gradient)
    .saves("input, weight, result1, result2")
    .reduction();

void check_channels(const char* op, const Tensor& in, const MaybeTensor& weight, const MaybeTensor& bias) {
  check(in.ndim() >= 2, op, ": Expected at least 2 dimensions for input tensor but received ", in.ndim());
  if (!is_floating(in.dtype())) fail_dtype(op, in.dtype());
  for (const MaybeTensor* parameter : {&weight, &bias}) {
    check(!*parameter || (*parameter)->numel() == in.sizes()[1], op, ": Expected weight and bias of ", in.sizes()[1],
          " values");
  }
}

void check_groups(const Tensor& in, int64_t groups) {
  check(groups > 0 && in.sizes()[1] % groups == 0,
        "group_norm: Expected number of channels in input to be divisible by num_groups, but got input of shape ",
        in.sizes(), " and num_groups=", groups);
}

OP("aten::group_norm")
    .set<ops::BatchIndependent>(ops::always_batch_independent)
    .infer([](const Tensor& in, int64_t groups, MaybeTensor weight, MaybeTensor bias, double, bool) {
      check_channels("group_norm", in, weight, bias);
      check_groups(in, groups);
      return TensorMeta{in.sizes(), in.dtype(), {}, in.device()};
    })
    .gradient([](const ops::GradArgs& args) {
      return norm_gradients(args, {0, 2, 3}, "tensord::group_norm_backward",
                            {args.grad_outputs[0], args.inputs[0], args.inputs[1], args.inputs[2], args.inputs[4]});
    })
    .saves("input, weight")
    .reduction();

// Here mean and rstd are results, whose gradients are 1 / n and - rstd^2 x^ / n.
std::vector<ops::Value> native_group_norm_gradient(const ops::GradArgs& args) {
  const auto& v = args.inputs;
  std::vector<ops::Value> out =
      norm_gradients(args, {0, 1, 2}, "tensord::native_group_norm_backward",
                     {args.grad_outputs[0], v[0], args.outputs[1], args.outputs[2], v[1], v[3], v[4], v[5], v[6]});
  const Tensor &to_mean = args.grad_outputs[1], &to_rstd = args.grad_outputs[2];
  if ((!to_mean.defined() && !to_rstd.defined()) || !args.needs(0)) return out;
  const Tensor& in = v[0].to_tensor();
  const Dims moments{v[3].to_int(), v[6].to_int(), 1}, grouped{v[3].to_int(), v[6].to_int(), -1};
  const auto shaped = [](const Tensor& x, const Dims& sizes) { return Expr(ops::reshape(x, sizes)); };
  const double n = static_cast<double>(in.numel()) / static_cast<double>(std::max<int64_t>(1, moments[0] * moments[1]));
  Expr slope = shaped(in, grouped) * 0.0;
  if (to_mean.defined()) slope = slope + shaped(to_mean, moments) / n;
  if (to_rstd.defined()) {
    const Expr rstd = shaped(args.outputs[2].to_tensor(), moments);
    const Expr centered = shaped(in, grouped) - shaped(args.outputs[1].to_tensor(), moments);
    slope = slope - centered * (shaped(to_rstd, moments) * rstd * rstd * rstd / n);
  }
  const Expr more = shaped(slope.tensor(), in.sizes());
  out[0] = gradient::fit_gradient(out[0].is_tensor() ? Expr(out[0]) + more : more, in);
  return out;
}

OP("aten::native_group_norm")
    .infer([](const Tensor& in, MaybeTensor weight, MaybeTensor bias, int64_t n, int64_t c, int64_t inner,
              int64_t groups, double) {
      check_channels("native_group_norm", in, weight, bias);
      check(inner >= 0 && in.sizes()[0] == n && in.sizes()[1] == c && in.numel() == n * c * inner,
            "the input is of size ", in.sizes(), ", expected ", n, ", ", c, " and ", inner);
      check_groups(in, groups);
      const DType stats = in.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
      const TensorMeta moments{Dims{n, groups}, stats, {}, in.device()};
      return std::vector<TensorMeta>{{in.sizes(), in.dtype(), {}, in.device()}, moments, moments};
    })
    .gradient(native_group_norm_gradient)
    .saves("input, weight, result1, result2")
    .reduction();

}  // namespace
}  // namespace tensord::kernels
