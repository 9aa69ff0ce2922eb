// An observer and a fake quantizer in one, as in modules that are trained for quantization.
#include "kernels/quantized/observe.h"
#include "kernels/expr/compose.h"
#include "ops/factory.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::GradArgs;
using ops::Scalar;

struct ObservedParameters {
  double averaging;
  int64_t min, max, axis;
  bool is_per_channel, is_symmetric;
};

void check_state(const Tensor& x, const Tensor& running, const ObservedParameters& grid, const char* name) {
  check(running.dtype() == DType::kFloat32, name, ": expected float32, got ", name_of(running.dtype()));
  const int64_t count = grid.is_per_channel ? x.size(grid.axis) : 1;
  check(running.numel() == count, name, ": expected ", count, " elements, got ", running.numel(),
        "; tensors are not made larger in place");
}

// Moves the running extreme towards that of x; the first one is taken unchanged.
void observe(const char* extreme, const Tensor& x, const Tensor& running, const ObservedParameters& grid) {
  Dims dims;
  for (int64_t i = 0; i < x.ndim(); ++i) {
    if (!grid.is_per_channel || i != grid.axis) dims.push_back(i);
  }
  check(x.numel() > 0, extreme, ": expected reduction dim to be specified for input.numel() == 0.");
  const Tensor now = dims.empty() ? ops::reshape(x, running.sizes())
                                  : ops::reshape(ops::call_by_name(extreme, x, dims), running.sizes());
  const double rate = static_cast<float>(grid.averaging);
  const Tensor moved = ops::add(running, ops::mul(ops::sub(now, running), Scalar(rate)));
  ops::copy_(running, ops::where(ops::isinf(running), now, moved));
}

void choose(const Tensor& least, const Tensor& greatest, const Tensor& scale, const Tensor& zero_point,
            const ObservedParameters& grid) {
  const Tensor steps = Tensor::empty(scale.sizes(), DType::kFloat32);
  const Tensor zeros = Tensor::empty(zero_point.sizes(), DType::kInt32);
  choose_quantizers({least, greatest, grid.min, grid.max, grid.is_symmetric}, steps, zeros);
  ops::copy_(scale, steps);
  ops::copy_(zero_point, zeros);
}

std::tuple<Tensor, Tensor> observe_and_round(const Tensor& x, const Tensor& observer_on, const Tensor& fake_quant_on,
                                             const Tensor& least, const Tensor& greatest, const Tensor& scale,
                                             const Tensor& zero_point, double averaging, int64_t min, int64_t max,
                                             int64_t axis, bool is_per_channel, bool is_symmetric) {
  check(axis < x.ndim(), "Error in fused_moving_avg_obs_fake_quant_cpu: ch_axis must be < self.dim()");
  check(axis >= 0 || !is_per_channel, "ch_axis must not be negative, got ", axis);
  check(min >= INT32_MIN / 2 && max <= INT32_MAX / 2, "quant_min and quant_max must have 31 bits, got ", min, " and ",
        max);
  const ObservedParameters grid{averaging, min, max, axis, is_per_channel, is_symmetric};
  const bool is_rounded = fake_quant_on.item_int() != 0;
  if (observer_on.item_int() != 0) {
    check(x.dtype() == DType::kFloat32, "expected a tensor of float32, got ", name_of(x.dtype()));
    check(!is_per_channel || axis == 0,
          "Per-channel FakeQuant in fused_moving_avg_obs_fake_quant is only supported on axis == 0");
    check_state(x, least, grid, "running_min");
    check_state(x, greatest, grid, "running_max");
    observe("aten::amin", x, least, grid);
    observe("aten::amax", x, greatest, grid);
  }
  if (!is_rounded) return {ops::clone(x), ops::ones_like(x, {.dtype = DType::kBool})};
  check_state(x, least, grid, "running_min");
  check_state(x, greatest, grid, "running_max");
  check_state(x, scale, grid, "scale");
  check(min < max, "In ChooseQuantizationParams, qmin should be less than qmax");
  check(zero_point.dtype() == DType::kInt32 && zero_point.numel() == scale.numel(),
        "zero_point: expected as many int32 as there are scales");
  choose(least, greatest, scale, zero_point, grid);
  const ops::Op& op = ops::get_op(is_per_channel ? "aten::fake_quantize_per_channel_affine_cachemask"
                                                 : "aten::fake_quantize_per_tensor_affine_cachemask");
  const auto rounded = is_per_channel
                           ? ops::run(op, ops::bind(op, {x, scale, zero_point, axis, min, max}))
                           : ops::run(op, ops::bind(op, {x, scale.item_double(), zero_point.item_int(), min, max}));
  return {rounded[0].to_tensor(), rounded[1].to_tensor()};
}

std::vector<Tensor> observed_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  if (args.needs(0)) gradients[0] = ops::mul(args.grad_outputs[0], args.outputs[1].to_tensor());
  return gradients;
}
OP("aten::_fused_moving_avg_obs_fq_helper")
    .impl(observe_and_round)
    .kind(ops::OpKind::kComposite)
    .gradient(observed_gradient)
    .saves("result1");
OP("aten::fused_moving_avg_obs_fake_quant")
    .impl([](const Tensor& x, const Tensor& observer_on, const Tensor& fake_quant_on, const Tensor& least,
             const Tensor& greatest, const Tensor& scale, const Tensor& zero_point, double averaging, int64_t min,
             int64_t max, int64_t axis, bool is_per_channel, bool is_symmetric) {
      const ops::Op& op = ops::get_op("aten::_fused_moving_avg_obs_fq_helper");
      return ops::run(op, ops::bind(op, {x, observer_on, fake_quant_on, least, greatest, scale, zero_point, averaging,
                                         min, max, axis, is_per_channel, is_symmetric}))[0]
          .to_tensor();
    })
    .composite();

// The gradient passes unchanged where the value is within the grid.
Tensor masked(const Tensor& grad, const Tensor& mask) {
  check(mask.dtype() == DType::kBool, "mask: expected bool, got ", name_of(mask.dtype()));
  check(mask.numel() == grad.numel(), "`mask` and `dY` are not the same size: `mask` is size ", mask.numel(),
        " and `dY` is size ", grad.numel());
  return grad.numel() == 0 ? grad : ops::mul(grad, mask);
}
OP("aten::fake_quantize_per_tensor_affine_cachemask_backward").impl(masked).composite();
OP("aten::fake_quantize_per_channel_affine_cachemask_backward").impl(masked).composite();

}  // namespace
}  // namespace tensord::kernels
