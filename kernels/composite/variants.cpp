// Rarely used variants of operators: in place, with the number first, under older names. Each is composed of the usual
// one.
#include <array>
#include <cmath>

#include "core/ops/attributes/written.h"
#include "core/ops/complex.h"
#include "kernels/expr/compose.h"
#include "ops/conv.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/pointwise.h"
#include "ops/random.h"
#include "ops/script.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::Scalar;
using ops::Value;

// --- in place: the result of the functional operator, copied

void check_holds_floats(const Tensor& x) {
  check(!is_integral(x.dtype(), true), "result type Float can't be cast to the desired output type ",
        name_of(x.dtype()));
}

OP("aten::logical_not_").impl([](const Tensor& x) { return ops::copy_(x, ops::logical_not(x)); }).composite();
// The gradient needs the values from before the call.
OP("aten::ldexp_")
    .impl([](const Tensor& x, const Tensor& other) {
      check_holds_floats(x);
      return ops::copy_(x, ops::ldexp(ops::clone(x), other));
    })
    .composite();
OP("aten::polygamma_")
    .impl([](const Tensor& x, int64_t order) {
      check_holds_floats(x);
      return ops::copy_(x, ops::polygamma(order, ops::clone(x)));
    })
    .composite();
Tensor raised_in_place(const Tensor& x, const Tensor& power) {
  check(x.dtype() == power.dtype(), "the base given to float_power_ has dtype ", name_of(x.dtype()),
        " but the operation's result requires dtype ", name_of(power.dtype()));
  return ops::copy_(x, power);
}
OP("aten::float_power_.Scalar")
    .impl([](const Tensor& x, const Scalar& exponent) {
      return raised_in_place(x, ops::float_power(ops::clone(x), exponent));
    })
    .composite();
OP("aten::float_power_.Tensor")
    .impl([](const Tensor& x, const Tensor& exponent) {
      ops::check_apart(ops::get_op("aten::float_power.Tensor_Tensor"), x, std::array<Value, 1>{exponent});
      return raised_in_place(x, ops::float_power(ops::clone(x), exponent));
    })
    .composite();
// The elements of the source in order, as many as the mask has ones.
Tensor masked_scatter_in_place(const Tensor& x, const Tensor& mask, const Tensor& source) {
  if (x.is_meta() || mask.is_meta()) return ops::copy_(x, ops::masked_scatter(x, mask, source));
  check(mask.dtype() == DType::kBool, "masked_scatter_ only supports boolean masks, but got mask with dtype ",
        name_of(mask.dtype()));
  check(x.dtype() == source.dtype(), "masked_scatter: expected self and source to have same dtypes but got ",
        name_of(x.dtype()), " and ", name_of(source.dtype()));
  ops::check_no_internal_overlap(x);
  const Tensor target = x.ndim() == 0 ? ops::unsqueeze(x, 0) : x;
  const Value named[] = {ops::expand(mask, target.sizes())};
  const Value positions = ops::run(ops::get_op("aten::nonzero_numpy"), named).front();
  const int64_t count = positions.to_list()->items[0].to_tensor().numel();
  check(count <= source.numel(), "masked_scatter_: expected more elements in source");
  if (count == 0) return x;
  const Tensor values = ops::narrow(ops::reshape(source, Dims{-1}), 0, 0, count);
  const ops::Op& op = ops::get_op("aten::index_put_");
  ops::run(op, ops::bind(op, {target, positions, values, false}));
  return x;
}
OP("aten::masked_scatter_").impl(masked_scatter_in_place).composite();
OP("aten::bernoulli_.Tensor")
    .impl([](const Tensor& x, const Tensor& p, const Value&) {
      const Tensor chances = is_floating(p.dtype()) ? p : compose::to(p, DType::kFloat32);
      return ops::copy_(x, ops::bernoulli(ops::expand(chances, x.sizes())));
    })
    .composite()
    .random();

// --- a number first. As elsewhere, a number has less weight than a tensor in type promotion.

Tensor as_tensor(const Scalar& number, const Tensor& beside) {
  const DType dtype = ops::result_type(beside, number);
  return compose::to(ops::tensor_of(number), dtype).to(beside.device());  // too large: becomes inf, or wraps
}

template <const char* const& NAME>
Tensor number_first(const Scalar& number, const Tensor& x) {
  return ops::call_by_name(NAME, as_tensor(number, x), x);
}
constexpr const char* kAnd = "aten::bitwise_and.Tensor";
constexpr const char* kOr = "aten::bitwise_or.Tensor";
constexpr const char* kXor = "aten::bitwise_xor.Tensor";
constexpr const char* kLeft = "aten::bitwise_left_shift.Tensor";
constexpr const char* kRight = "aten::bitwise_right_shift.Tensor";
constexpr const char* kRemainder = "aten::remainder.Tensor";

OP("aten::bitwise_and.Scalar_Tensor").impl(number_first<kAnd>).composite();
OP("aten::bitwise_or.Scalar_Tensor").impl(number_first<kOr>).composite();
OP("aten::bitwise_xor.Scalar_Tensor").impl(number_first<kXor>).composite();
OP("aten::bitwise_left_shift.Scalar_Tensor").impl(number_first<kLeft>).composite();
OP("aten::bitwise_right_shift.Scalar_Tensor").impl(number_first<kRight>).composite();
OP("aten::remainder.Scalar_Tensor").impl(number_first<kRemainder>).composite();

// --- a number that is scattered by a sum or a product

Tensor scatter_number(const char* name, const Tensor& x, int64_t dim, const Tensor& index, const Scalar& value,
                      const std::string& reduce) {
  const Tensor source = ops::full(index.sizes(), value, {.dtype = x.dtype(), .device = x.device()});
  return ops::call_by_name(name, x, dim, index, source, reduce);
}
OP("aten::scatter.value_reduce")
    .impl([](const Tensor& x, int64_t dim, const Tensor& index, const Scalar& value, const std::string& reduce) {
      return scatter_number("aten::scatter.reduce", x, dim, index, value, reduce);
    })
    .composite();
OP("aten::scatter_.value_reduce")
    .impl([](const Tensor& x, int64_t dim, const Tensor& index, const Scalar& value, const std::string& reduce) {
      return scatter_number("aten::scatter_.reduce", x, dim, index, value, reduce);
    })
    .composite();

// --- tensors of (time, batch, channels)

OP("aten::conv_tbc")
    .impl([](const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t pad) {
      check(x.ndim() == 3, "Input must have 3 dims: time, batch, in_channel, but got ", x.ndim());
      check(weight.ndim() == 3, "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels, but got ",
            weight.ndim());
      check(bias.ndim() == 1, "Bias must be 1-D, but got ", bias.ndim());
      const Tensor out = ops::conv1d(ops::permute(x, Dims{1, 2, 0}), ops::permute(weight, Dims{2, 1, 0}), bias, Dims{1},
                                     Dims{pad}, Dims{1});
      return ops::contiguous(ops::permute(out, Dims{2, 0, 1}));
    })
    .composite();

// --- arange that includes its end

Tensor range(const Scalar& start, const Scalar& end, const Scalar& step, std::optional<DType> dtype, const Value&,
             const Value& device, const Value&) {
  const double from = start.to_double(), to = end.to_double(), by = step.to_double();
  check(by != 0, "step must be nonzero");
  check(std::isfinite(from) && std::isfinite(to), "unsupported range: ", from, " -> ", to);
  check(by > 0 ? to >= from : to <= from, "upper bound and lower bound inconsistent with step sign");
  const double steps = std::floor((to - from) / by);
  check(steps < 1e15, "a range of ", steps, " numbers is too large");
  const Tensor count = ops::arange(static_cast<int64_t>(steps) + 1,
                                   {.dtype = DType::kFloat64, .device = ops::unbox<std::optional<Device>>(device)});
  return compose::to(ops::add(ops::mul(count, by), from), dtype.value_or(DType::kFloat32));
}
OP("aten::range.step").impl(range);
OP("aten::range")
    .impl([](const Scalar& start, const Scalar& end, std::optional<DType> dtype, const Value& layout,
             const Value& device, const Value& pin) { return range(start, end, 1, dtype, layout, device, pin); });

}  // namespace
}  // namespace tensord::kernels
