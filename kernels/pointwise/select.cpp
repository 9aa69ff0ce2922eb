// Elementwise selection and the activations with their own schemas: where, masked_fill,
// nan_to_num, gelu, prelu, logit, xlogy, bitwise_not, digamma, polygamma, max.other, min.other.
#include <cmath>
#include <limits>
#include <tuple>

#include "core/ops/attributes/exported.h"
#include "core/ops/attributes/written.h"
#include "kernels/base/number_range.h"
#include "kernels/expr/expr.h"
#include "kernels/pointwise/pointwise.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using gradient::Expr;
using gradient::fit_gradient;
using gradient::put;
using ops::GradArgs;
using ops::Scalar;
using ops::TensorMeta;
using ops::WritesInto;

// The arguments of a gradient formula, in the order of the calls of `put`.
using Given = std::span<const Expr>;

// where: the condition chooses, self and other are promoted.

template <class A, class B>
void add_where(const char* op) {
  ops::OpBuilder(op, __FILE__, __LINE__)
      .infer([](const Tensor& condition, A a, B b) {
        check(condition.dtype() == DType::kBool || condition.dtype() == DType::kUInt8,
              "where: expected condition to be a boolean tensor, but got a tensor with dtype ",
              name_of(condition.dtype()));
        const std::array operands{Operand(condition), Operand(a), Operand(b)};
        return infer_pointwise(operands, compute_dtype("where", TypeClass::kArith, std::span(operands).last(2)));
      })
      .gradient([](const GradArgs& args) {
        std::vector<Tensor> gradients(args.inputs.size());
        const Expr g = args.grad_outputs[0], condition = args.inputs[0];
        put(gradients, args, 1, [](Given x) { return gradient::where(x[1], x[0], 0.0); }, {g, condition});
        put(gradients, args, 2, [](Given x) { return gradient::where(x[1], 0.0, x[0]); }, {g, condition});
        return gradients;
      })
      .saves("condition")
      .pointwise()
      .keeps_layout();
  add_pointwise_kernel(op, [](const Tensor& condition, A a, B b) {
    const std::array operands{Operand(condition), Operand(a), Operand(b)};
    return PointwiseCall(Formula::where, promote_operands(std::span(operands).last(2)), operands);
  });
}

// masked_fill: the value takes self's dtype.

template <class V>
void add_masked_fill(const char* op) {
  ops::OpBuilder(op, __FILE__, __LINE__)
      .infer([](const Tensor& a, const Tensor& mask, V value) {
        check(mask.dtype() == DType::kBool || mask.dtype() == DType::kUInt8,
              "masked_fill: expected mask dtype to be Bool but got ", name_of(mask.dtype()));
        if constexpr (std::is_same_v<V, const Tensor&>) {
          check(value.ndim() == 0, "masked_fill: only supports a 0-dimensional value tensor, but got tensor with ",
                value.ndim(), " dimension(s).");
        } else {
          check_holds("masked_fill", a.dtype(), value);
        }
        return infer_pointwise(std::array{Operand(a), Operand(mask)}, a.dtype());
      })
      .gradient([](const GradArgs& args) {
        std::vector<Tensor> gradients(args.inputs.size());
        const Expr g = args.grad_outputs[0], mask = args.inputs[1];
        put(gradients, args, 0, [](Given x) { return gradient::where(x[1], 0.0, x[0]); }, {g, mask});
        put(gradients, args, 2, [](Given x) { return gradient::where(x[1], x[0], 0.0); }, {g, mask});
        return gradients;
      })
      .saves("mask")
      .pointwise()
      .keeps_layout();
  add_pointwise_kernel(op, [](const Tensor& a, const Tensor& mask, V value) {
    // 0.5 is true, and must not be cut to an integer first.
    if constexpr (std::is_same_v<V, Scalar>) {
      if (a.dtype() == DType::kBool) value = Scalar(value.to_double() != 0);
    }
    return PointwiseCall(Formula::masked_fill, a.dtype(), std::array{Operand(a), Operand(mask), Operand(value)});
  });
}

TensorMeta infer_same(const Tensor& a) { return infer_pointwise(std::array{Operand(a)}, a.dtype()); }
TensorMeta infer_floating(const char* op, const Tensor& a) {
  return infer_pointwise(std::array{Operand(a)}, compute_dtype(op, TypeClass::kFloatOnly, std::array{Operand(a)}));
}

using MaybeDouble = std::optional<double>;
OP("aten::nan_to_num")
    .infer([](const Tensor& a, MaybeDouble, MaybeDouble, MaybeDouble) { return infer_same(a); })
    .gradient([](const GradArgs& args) {
      std::vector<Tensor> gradients(args.inputs.size());
      put(gradients, args, 0,
          [](Given x) { return x[0] * (gradient::abs(x[1]) < std::numeric_limits<double>::infinity()); },
          {args.grad_outputs[0], args.inputs[0]});
      return gradients;
    })
    .saves("self")
    .pointwise()
    .keeps_layout()
    .set<WritesInto>(WritesInto::kSameDType);
PointwiseCall nan_to_num(const Tensor& a, MaybeDouble nan, MaybeDouble high, MaybeDouble low) {
  if (!is_floating(a.dtype())) return {Formula::same, a.dtype(), std::array{Operand(a)}};
  const double limit = largest(a.dtype());
  return {Formula::nan_to_num,
          a.dtype(),
          std::array{Operand(a)},
          {nan.value_or(0.0), high.value_or(limit), low.value_or(-limit)}};
}

// gelu: x Phi(x), exactly or by tanh. Its derivative is Phi(x) + x phi(x).

Formula gelu_formula(const std::string& approximate) {
  check(approximate == "none" || approximate == "tanh", "gelu: approximate argument must be either none or tanh.");
  return approximate == "none" ? Formula::gelu : Formula::gelu_tanh;
}
std::vector<Tensor> gelu_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  if (args.needs(0))
    gradients[0] = ops::gelu_backward(args.grad_outputs[0], args.inputs[0].to_tensor(),
                                      {.approximate = args.inputs[1].to_string()});
  return gradients;
}
OP("aten::gelu")
    .infer([](const Tensor& a, const std::string&) { return infer_floating("gelu", a); })
    .gradient(gelu_gradient)
    .saves("self")
    .pointwise()
    .keeps_layout()
    .set<WritesInto>(WritesInto::kSameDType);

// prelu: weight has one value, or one for each channel (dimension 1).

// The sizes with which the weight broadcasts.
Dims prelu_sizes(const Tensor& a, const Tensor& weight) {
  check(weight.dtype() == a.dtype(), "prelu: Type promoting not supported. Got ", name_of(a.dtype()), " and ",
        name_of(weight.dtype()));
  check(weight.ndim() <= 1, "prelu: Expected `weight` to be a scalar or 1D tensor, but got ndim = ", weight.ndim());
  if (weight.numel() == 1) return {};
  const int64_t channels = a.ndim() > 1 ? a.size(1) : 1;
  check(weight.numel() == channels,
        "prelu: Mismatch of parameter numbers and input channel size. Found parameter numbers = ", weight.numel(),
        " and channel size = ", channels, ".");
  Dims sizes(static_cast<size_t>(a.ndim()), 1);
  sizes[1] = channels;
  return sizes;
}
Tensor prelu_weight(const Tensor& a, const Tensor& weight) {
  const Dims sizes = prelu_sizes(a, weight);
  Dims strides(sizes.size(), 0);
  if (!sizes.empty()) strides[1] = weight.strides()[0];
  return weight.as_view(sizes, strides, weight.offset());
}
OP("aten::prelu")
    .infer([](const Tensor& a, const Tensor& weight) {
      prelu_sizes(a, weight);
      return infer_floating("prelu", a);
    })
    .gradient([](const GradArgs& args) {
      std::vector<Tensor> gradients(2);
      const Expr g = args.grad_outputs[0], a = args.inputs[0];
      const Tensor& weight = args.inputs[1].to_tensor();
      const Tensor shaped = ops::reshape(weight, prelu_sizes(a.tensor(), weight));
      put(gradients, args, 0, [](Given x) { return gradient::where(x[1] > 0, x[0], x[0] * x[2]); }, {g, a, shaped});
      if (!args.needs(1)) return gradients;
      const Expr operands[] = {g, a};
      const Tensor reduced =
          evaluate([](Given x) { return gradient::where(x[1] > 0, 0.0, x[0] * x[1]); }, operands, shaped);
      gradients[1] = ops::reshape(reduced, weight.sizes());
      return gradients;
    })
    .saves("self: self, weight; weight: self")
    .keeps_layout();

// Both gradients. `shaped` broadcasts with a; the weight's gradient has a's sizes.
std::tuple<Tensor, Tensor> prelu_gradients(const Tensor& grad, const Tensor& a, const Tensor& shaped) {
  const Expr g = grad, x = a, is_kept = x > 0;
  return {gradient::where(is_kept, g, g * Expr(shaped)).tensor(), gradient::where(is_kept, 0.0, g * x).tensor()};
}
// PyTorch 1.13's form.
OP("aten::prelu_backward")
    .set<ops::NotInPyTorch>()
    .impl([](const Tensor& grad, const Tensor& a, const Tensor& weight) {
      check(is_floating(a.dtype()) && grad.dtype() == a.dtype(), "prelu_backward: not implemented for ",
            name_of(grad.dtype()), " and ", name_of(a.dtype()));
      const Tensor shaped = ops::reshape(weight, prelu_sizes(a, weight));
      const auto [of_a, of_weight] = prelu_gradients(grad, a, shaped);
      return std::tuple(of_a, ops::reshape(fit_gradient(of_weight, shaped), weight.sizes()));
    })
    .composite();
// PyTorch 2's form, whose weight has been reshaped.
OP("aten::_prelu_kernel")
    .impl([](const Tensor& a, const Tensor& weight) {
      return gradient::where(Expr(a) > 0, a, Expr(a) * Expr(weight)).tensor();
    })
    .composite();
OP("aten::_prelu_kernel_backward").impl(prelu_gradients).composite();

Expr logit_gradient(Given x) {
  const Expr &g = x[0], &a = x[1];
  const Expr is_outside = gradient::where(a < 0, 1.0, gradient::where(a > 1, 1.0, 0.0));
  return gradient::where(is_outside == 1, std::numeric_limits<double>::quiet_NaN(), g / (a * (-a + 1)));
}
Expr logit_clamped_gradient(Given x) {
  const Expr &g = x[0], &a = x[1], &low = x[2], &high = x[3];
  return gradient::where(a < low, 0.0, gradient::where(a > high, 0.0, g / (a * (-a + 1))));
}

// A number rounded to the dtype of that tensor.
double as_element(DType dtype, double number) {
  switch (dtype) {
    case DType::kFloat16: return static_cast<float>(Half(static_cast<float>(number)));
    case DType::kBFloat16: return static_cast<float>(BFloat16(static_cast<float>(number)));
    case DType::kFloat64: return number;
    default: return static_cast<float>(number);
  }
}
// eps and 1 - eps, each rounded to the type: in bfloat16 1 - 1e-3 is 1.
std::array<double, 2> logit_bounds(const Tensor& a, double eps) {
  const DType dtype = is_floating(a.dtype()) ? a.dtype() : DType::kFloat32;
  const double low = as_element(dtype, eps);
  return {low, as_element(dtype, 1 - low)};
}
OP("aten::logit")
    .infer([](const Tensor& a, MaybeDouble) {
      return infer_pointwise(std::array{Operand(a)}, compute_dtype("logit", TypeClass::kFloat, std::array{Operand(a)}));
    })
    .gradient([](const GradArgs& args) {
      std::vector<Tensor> gradients(args.inputs.size());
      const bool is_clamped = !args.inputs[1].is_none();
      const auto [low, high] =
          logit_bounds(args.inputs[0].to_tensor(), is_clamped ? args.inputs[1].to_scalar().to_double() : 0);
      put(gradients, args, 0, is_clamped ? logit_clamped_gradient : logit_gradient,
          {args.grad_outputs[0], args.inputs[0], low, high});
      return gradients;
    })
    .saves("self")
    .pointwise()
    .keeps_layout();

// A negative eps counts as none, as in PyTorch.
OP("aten::logit_backward")
    .impl([](const Tensor& grad, const Tensor& a, MaybeDouble eps) {
      check(is_floating(grad.dtype()) || is_floating(a.dtype()), "logit_backward: not implemented for ",
            name_of(a.dtype()));
      const bool is_clamped = eps && *eps >= 0;
      const auto [low, high] = logit_bounds(a, is_clamped ? *eps : 0.0);
      const Expr operands[] = {grad, a, low, high};
      return (is_clamped ? logit_clamped_gradient(operands) : logit_gradient(operands)).tensor();
    })
    .composite();

TensorMeta infer_float(const char* op, const Tensor& a) {
  return infer_pointwise(std::array{Operand(a)}, compute_dtype(op, TypeClass::kFloat, std::array{Operand(a)}));
}
OP("aten::digamma")
    .infer([](const Tensor& a) { return infer_float("digamma", a); })
    .gradient([](const GradArgs& args) {
      std::vector<Tensor> gradients(1);
      put(gradients, args, 0, [](Given x) { return x[0] * gradient::polygamma(1, x[1]); },
          {args.grad_outputs[0], args.inputs[0]});
      return gradients;
    })
    .saves("self")
    .pointwise()
    .keeps_layout();
OP("aten::polygamma")
    .infer([](int64_t order, const Tensor& a) {
      check(order >= 0, "polygamma(n, x) does not support negative n.");
      return infer_float("polygamma", a);
    })
    .gradient([](const GradArgs& args) {
      std::vector<Tensor> gradients(2);
      const auto next = static_cast<double>(args.inputs[0].to_int() + 1);
      put(gradients, args, 1, [](Given x) { return x[0] * gradient::polygamma(static_cast<int>(x[2].number()), x[1]); },
          {args.grad_outputs[0], args.inputs[1], next});
      return gradients;
    })
    .saves("self")
    .pointwise()
    .keeps_layout();

OP("aten::bitwise_not")
    .infer([](const Tensor& a) {
      return infer_pointwise(std::array{Operand(a)},
                             compute_dtype("bitwise_not", TypeClass::kInteger, std::array{Operand(a)}));
    })
    .pointwise()
    .keeps_layout()
    .set<WritesInto>(WritesInto::kSameDType);

Expr xlogy_gradient(Given x) {
  const Expr &g = x[0], &a = x[1], &b = x[2], slope = gradient::xlogy(g, b);
  return gradient::where(a == 0, gradient::where(b <= 0, 0.0, slope), slope);
}
template <class A, class B>
void add_xlogy(const char* op) {
  ops::OpBuilder builder(op, __FILE__, __LINE__);
  builder
      .infer([](A a, B b) {
        const std::array operands{Operand(a), Operand(b)};
        return infer_pointwise(operands, compute_dtype("xlogy", TypeClass::kFloat, operands));
      })
      .gradient([](const GradArgs& args) {
        std::vector<Tensor> gradients(args.inputs.size());
        const Expr g = args.grad_outputs[0], a = args.inputs[0], b = args.inputs[1];
        put(gradients, args, 0, xlogy_gradient, {g, a, b});
        put(gradients, args, 1, [](Given x) { return x[0] * x[1] / x[2]; }, {g, a, b});
        return gradients;
      })
      .saves("self, other")
      .pointwise()
      .keeps_layout();
  add_pointwise_kernel(op, [](A a, B b) {
    const std::array operands{Operand(a), Operand(b)};
    return PointwiseCall(Formula::xlogy, compute_dtype("xlogy", TypeClass::kFloat, operands), operands);
  });
}

// The gradient of the first operand where it is the larger one, and half of it where they are equal.
Expr losing_gives_none(Given x) {
  return gradient::where(x[1] < x[2], 0.0, x[0] * gradient::where(x[1] == x[2], 0.5, 1.0));
}

// max.other and min.other are other names of maximum and minimum.
void add_extremum(const char* op, Formula formula, bool is_max) {
  ops::OpBuilder(op, __FILE__, __LINE__)
      .infer([](const Tensor& a, const Tensor& b) {
        const std::array operands{Operand(a), Operand(b)};
        return infer_pointwise(operands, promote_operands(operands));
      })
      .gradient([is_max](const GradArgs& args) {
        std::vector<Tensor> gradients(2);
        const Expr g = args.grad_outputs[0], a = args.inputs[0], b = args.inputs[1];
        put(gradients, args, 0, losing_gives_none, {g, is_max ? a : b, is_max ? b : a});
        put(gradients, args, 1, losing_gives_none, {g, is_max ? b : a, is_max ? a : b});
        return gradients;
      })
      .saves("self, other")
      .pointwise()
      .keeps_layout();
  add_pointwise_kernel(op, [formula](const Tensor& a, const Tensor& b) {
    const std::array operands{Operand(a), Operand(b)};
    return PointwiseCall(formula, promote_operands(operands), operands);
  });
}

bool register_select() {
  add_where<const Tensor&, const Tensor&>("aten::where.self");
  add_where<Scalar, const Tensor&>("aten::where.ScalarSelf");
  add_where<const Tensor&, Scalar>("aten::where.ScalarOther");
  add_where<Scalar, Scalar>("aten::where.Scalar");
  add_masked_fill<Scalar>("aten::masked_fill.Scalar");
  add_masked_fill<const Tensor&>("aten::masked_fill.Tensor");
  add_xlogy<const Tensor&, const Tensor&>("aten::xlogy.Tensor");
  add_xlogy<Scalar, const Tensor&>("aten::xlogy.Scalar_Self");
  add_xlogy<const Tensor&, Scalar>("aten::xlogy.Scalar_Other");
  add_extremum("aten::max.other", Formula::maximum, true);
  add_extremum("aten::min.other", Formula::minimum, false);
  add_pointwise_kernel("aten::nan_to_num", nan_to_num);
  add_pointwise_kernel("aten::gelu", [](const Tensor& a, const std::string& approximate) {
    return PointwiseCall(gelu_formula(approximate), a.dtype(), std::array{Operand(a)});
  });
  add_pointwise_kernel("aten::prelu", [](const Tensor& a, const Tensor& weight) {
    const Tensor shaped = prelu_weight(a, weight);
    PointwiseCall call(Formula::prelu, a.dtype(), std::array{Operand(a), Operand(shaped)});
    call.own_operands();
    return call;
  });
  const auto float_of = [](const Tensor& a) { return is_floating(a.dtype()) ? a.dtype() : DType::kFloat32; };
  add_pointwise_kernel("aten::logit", [float_of](const Tensor& a, MaybeDouble eps) {
    const auto [low, high] = logit_bounds(a, eps.value_or(0.0));
    return PointwiseCall(eps ? Formula::logit_clamped : Formula::logit, float_of(a), std::array{Operand(a)},
                         {low, high});
  });
  add_pointwise_kernel("aten::digamma", [float_of](const Tensor& a) {
    return PointwiseCall(Formula::digamma, float_of(a), std::array{Operand(a)});
  });
  add_pointwise_kernel("aten::polygamma", [float_of](int64_t order, const Tensor& a) {
    return PointwiseCall(Formula::polygamma, float_of(a), std::array{Operand(a)}, {order});
  });
  add_pointwise_kernel("aten::bitwise_not", [](const Tensor& a) {
    return PointwiseCall(a.dtype() == DType::kBool ? Formula::logical_not : Formula::bitwise_not, a.dtype(),
                         std::array{Operand(a)});
  });
  return true;
}
[[maybe_unused]] const bool select_registered = register_select();

}  // namespace
}  // namespace tensord::kernels
