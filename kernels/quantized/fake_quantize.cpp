#include "core/ops/op.h"
#include "core/ops/run.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

// Rounding to a quantized grid and back, as in models that are trained for quantization. The gradient passes unchanged
// where the value is within the grid.
namespace tensord::kernels {
namespace {

using ops::GradArgs;
using ops::Value;

struct Grid {
  Tensor output, mask;  // the mask: elements within the grid
};

// `inverse`, `zero_point` and `scale` are numbers, or tensors that broadcast with x. Numbers that are not finite go to
// the grid's beginning, as PyTorch's conversion to an integer makes them.
Grid round_to_grid(const Tensor& x, const Value& inverse, const Value& zero_point, const Value& scale, int64_t min,
                   int64_t max) {
  const auto with = [](const char* name, const Tensor& a, const Value& b) {
    return ops::call_by_name(concat("aten::", name, b.is_strided() ? ".Tensor" : ".Scalar").c_str(), a, b);
  };
  const Tensor places = with("add", ops::round(with("mul", x, inverse)), zero_point);
  const Tensor is_finite = ops::isfinite(places);
  const Tensor place = ops::where(is_finite, places, static_cast<double>(min));
  const Tensor mask = ops::logical_and(is_finite, ops::logical_and(ops::ge(place, min), ops::le(place, max)));
  const Tensor kept = ops::clamp(place, min, max);
  return {with("mul", with("sub", kept, zero_point), scale), mask};
}

void check_dtype(const Tensor& x) {
  check(is_floating(x.dtype()) && x.dtype() != DType::kBFloat16,
        "expected a tensor of float32, float64 or float16, got ", name_of(x.dtype()));
}
Tensor widened(const Tensor& x) { return x.dtype() == DType::kFloat16 ? x.to(DType::kFloat32) : x; }
Grid as_given(const Tensor& x, const Grid& grid) { return {grid.output.to(x.dtype()), grid.mask}; }

Grid round_per_tensor(const Tensor& x, double scale, int64_t zero_point, int64_t min, int64_t max) {
  check_dtype(x);
  check(min <= max, "`quant_min` should be less than or equal to `quant_max`.");
  check(zero_point >= min && zero_point <= max, "`zero_point` must be between `quant_min` and `quant_max`.");
  // In single precision, whatever the dtype of the tensor is.
  const float step = static_cast<float>(scale), inverse = 1.0f / step;
  return as_given(x,
                  round_to_grid(widened(x), double{inverse}, static_cast<double>(zero_point), double{step}, min, max));
}

Grid round_per_channel(const Tensor& x, const Tensor& scale, const Tensor& zero_point, int64_t axis, int64_t min,
                       int64_t max) {
  check_dtype(x);
  check(min <= max, "`quant_min` should be less than or equal to `quant_max`.");
  check(scale.dtype() == DType::kFloat32, "Scale must be Float, found ", name_of(scale.dtype()));
  check(zero_point.dtype() == DType::kInt32 || zero_point.dtype() == DType::kFloat32,
        "Zero-point must be Int32 or Float, found ", name_of(zero_point.dtype()));
  check(scale.ndim() == 1 && zero_point.ndim() == 1 && scale.numel() == zero_point.numel(),
        "scale and zero-point need to be 1-D tensors of the same dimensions");
  check(axis >= 0 && axis < x.ndim(), "`axis` must be between 0 and number of dimensions of input");
  check(scale.numel() == x.sizes()[axis], "dimensions of scale and zero-point are not consistent with input tensor");
  check(ops::all(ops::logical_and(ops::ge(zero_point, min), ops::le(zero_point, max))).item_bool(),
        "`zero_point` must be between `quant_min` and `quant_max`.");
  Dims sizes(x.sizes().size(), 1);
  sizes[static_cast<size_t>(axis)] = scale.numel();
  const auto shaped = [&](const Tensor& a) { return ops::reshape(a.to(DType::kFloat32), sizes); };
  const Tensor inverse = ops::reciprocal(shaped(scale));
  return as_given(x, round_to_grid(widened(x), inverse, shaped(zero_point), shaped(scale), min, max));
}

std::vector<Tensor> through(const GradArgs& args, const Tensor& mask) {
  std::vector<Tensor> gradients(args.inputs.size());
  if (args.needs(0)) gradients[0] = ops::mul(args.grad_outputs[0], mask);
  return gradients;
}
std::vector<Tensor> through_result(const GradArgs& args) { return through(args, args.outputs[1].to_tensor()); }

OP("aten::fake_quantize_per_tensor_affine")
    .impl([](const Tensor& x, double scale, int64_t zero_point, int64_t min, int64_t max) {
      return round_per_tensor(x, scale, zero_point, min, max).output;
    })
    .kind(ops::OpKind::kComposite)
    .gradient([](const GradArgs& args) {
      const auto& v = args.inputs;
      return through(args, round_per_tensor(v[0].to_tensor(), v[1].to_scalar().to_double(), v[2].to_int(),
                                            v[3].to_int(), v[4].to_int())
                               .mask);
    })
    .saves("self");
OP("aten::fake_quantize_per_tensor_affine.tensor_qparams")
    .impl([](const Tensor& x, const Tensor& scale, const Tensor& zero_point, int64_t min, int64_t max) {
      return round_per_tensor(x, scale.item_double(), zero_point.item_int(), min, max).output;
    })
    .kind(ops::OpKind::kComposite)
    .gradient([](const GradArgs& args) {
      const auto& v = args.inputs;
      return through(args, round_per_tensor(v[0].to_tensor(), v[1].to_tensor().item_double(),
                                            v[2].to_tensor().item_int(), v[3].to_int(), v[4].to_int())
                               .mask);
    })
    .saves("self, scale, zero_point");
OP("aten::fake_quantize_per_tensor_affine_cachemask")
    .impl([](const Tensor& x, double scale, int64_t zero_point, int64_t min, int64_t max) {
      Grid grid = round_per_tensor(x, scale, zero_point, min, max);
      return std::tuple(grid.output, grid.mask);
    })
    .kind(ops::OpKind::kComposite)
    .gradient(through_result)
    .saves("result1");
OP("aten::fake_quantize_per_channel_affine")
    .impl([](const Tensor& x, const Tensor& scale, const Tensor& zero_point, int64_t axis, int64_t min, int64_t max) {
      return round_per_channel(x, scale, zero_point, axis, min, max).output;
    })
    .kind(ops::OpKind::kComposite)
    .gradient([](const GradArgs& args) {
      const auto& v = args.inputs;
      return through(args, round_per_channel(v[0].to_tensor(), v[1].to_tensor(), v[2].to_tensor(), v[3].to_int(),
                                             v[4].to_int(), v[5].to_int())
                               .mask);
    })
    .saves("self, scale, zero_point");
OP("aten::fake_quantize_per_channel_affine_cachemask")
    .impl([](const Tensor& x, const Tensor& scale, const Tensor& zero_point, int64_t axis, int64_t min, int64_t max) {
      Grid grid = round_per_channel(x, scale, zero_point, axis, min, max);
      return std::tuple(grid.output, grid.mask);
    })
    .kind(ops::OpKind::kComposite)
    .gradient(through_result)
    .saves("result1");

}  // namespace
}  // namespace tensord::kernels
