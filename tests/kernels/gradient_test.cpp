// Gradient slots against finite differences in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/ops/run.h"

namespace tensord {
namespace {

using ops::Value;

// Values away from 0 and from each other's kinks.
Tensor sample(const Dims& sizes, double low, double high, uint32_t seed) {
  Tensor out = Tensor::empty(sizes, DType::kFloat64);
  uint32_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < out.numel(); ++i) {
    state = state * 1664525u + 1013904223u;
    out.data<double>()[i] = low + (high - low) * ((state >> 8) / 16777216.0);
  }
  return out;
}

struct Row {
  std::string op;
  std::vector<Value> arguments;
};

// Sum of weights * first result.
double loss(const ops::Op& op, const std::vector<Value>& arguments, const Tensor& weights) {
  const Tensor result = ops::run(op, arguments).at(0).to_tensor().contiguous();
  double total = 0;
  for (int64_t i = 0; i < result.numel(); ++i) total += result.data<double>()[i] * weights.data<double>()[i];
  return total;
}

void expect_gradient(const Row& row) {
  SCOPED_TRACE(row.op);
  const ops::Op& op = ops::get_op(row.op);
  ASSERT_TRUE(op.gradient) << "no gradient";
  std::vector<Value> arguments = ops::bind(op, row.arguments);
  const std::vector<Value> outputs = ops::run(op, arguments);
  const Tensor& first = outputs.at(0).to_tensor();
  const Tensor weights = sample(first.sizes(), 0.5, 1.5, 77);
  std::vector<Tensor> incoming(outputs.size());
  incoming[0] = weights;
  const std::vector<Value> gradients = op.gradient({arguments, outputs, incoming});
  for (size_t a = 0; a < arguments.size(); ++a) {
    if (!arguments[a].is_tensor() || arguments[a].to_tensor().dtype() != DType::kFloat64) continue;
    ASSERT_TRUE(gradients.at(a).is_tensor()) << "argument " << a;
    const Tensor input = arguments[a].to_tensor(), gradient = gradients[a].to_tensor().contiguous();
    ASSERT_EQ(gradient.sizes(), input.sizes());
    constexpr double kStep = 1e-6;
    for (int64_t i = 0; i < input.numel(); ++i) {
      const double old = input.data<double>()[i];
      input.data<double>()[i] = old + kStep;
      const double above = loss(op, arguments, weights);
      input.data<double>()[i] = old - kStep;
      const double below = loss(op, arguments, weights);
      input.data<double>()[i] = old;
      const double expected = (above - below) / (2 * kStep);
      EXPECT_NEAR(gradient.data<double>()[i], expected, 1e-5 * std::max(1.0, std::abs(expected)))
          << "argument " << a << " element " << i;
    }
  }
}

Tensor wide(uint32_t seed = 1) { return sample(Dims{2, 3}, -2.5, 2.5, seed); }
Tensor positive(uint32_t seed = 2) { return sample(Dims{2, 3}, 0.3, 2.5, seed); }
Tensor row_of(double low, double high) { return sample(Dims{3}, low, high, 5); }
Value ints(const Dims& dims) { return ops::make_int_list(dims); }

TEST(Gradient, OfUnaryOperators) {
  for (const char* name :
       {"exp",        "exp2",    "expm1", "sin",       "cos",        "atan",       "sinh",        "cosh",
        "tanh",       "asinh",   "erf",   "erfc",      "sigmoid",    "abs",        "neg",         "square",
        "relu",       "relu6",   "selu",  "silu",      "mish",       "hardswish",  "hardsigmoid", "log_sigmoid",
        "leaky_relu", "elu",     "celu",  "hardtanh",  "hardshrink", "softshrink", "softplus",    "gelu",
        "frac",       "deg2rad", "floor", "nan_to_num"}) {
    expect_gradient({std::string("aten::") + name, {wide()}});
  }
  for (const char* name : {"log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "tan", "lgamma"}) {
    expect_gradient({std::string("aten::") + name, {sample(Dims{5}, 0.2, 1.3, 3)}});
  }
  for (const char* name : {"asin", "acos", "atanh", "erfinv"}) {
    expect_gradient({std::string("aten::") + name, {sample(Dims{5}, -0.8, 0.8, 4)}});
  }
  expect_gradient({"aten::acosh", {sample(Dims{5}, 1.2, 3.0, 4)}});
  expect_gradient({"aten::gelu", {wide(), "tanh"}});
  expect_gradient({"aten::elu", {wide(), 1.2, 1.5, 0.7}});
  expect_gradient({"aten::softplus", {wide(), 1.5, 2.0}});
  expect_gradient({"aten::threshold", {wide(), 0.3, -1.0}});
  expect_gradient({"aten::logit", {sample(Dims{5}, 0.1, 0.9, 4)}});
  expect_gradient({"aten::clamp", {wide(), -1.0, 1.0}});
}

TEST(Gradient, OfBinaryOperatorsWithBroadcasting) {
  for (const char* name :
       {"add.Tensor", "sub.Tensor", "rsub.Tensor", "mul.Tensor", "div.Tensor", "atan2", "hypot", "maximum", "minimum",
        "fmax", "fmin", "copysign.Tensor", "remainder.Tensor", "fmod.Tensor"}) {
    expect_gradient({std::string("aten::") + name, {positive(), row_of(0.4, 2.0)}});
    expect_gradient({std::string("aten::") + name, {row_of(0.4, 2.0), sample(Dims{4, 1}, 0.5, 2.2, 9)}});
  }
  expect_gradient({"aten::add.Tensor", {wide(), row_of(-1, 1), 2.5}});
  expect_gradient({"aten::sub.Scalar", {wide(), 2.0, 1.5}});
  expect_gradient({"aten::rsub.Scalar", {wide(), 2.0, 1.5}});
  expect_gradient({"aten::mul.Scalar", {wide(), 2.0}});
  expect_gradient({"aten::div.Scalar", {wide(), 2.0}});
  expect_gradient({"aten::pow.Tensor_Scalar", {positive(), 2.3}});
  expect_gradient({"aten::pow.Tensor_Tensor", {positive(), row_of(-1, 2)}});
  expect_gradient({"aten::pow.Scalar", {1.7, wide()}});
  expect_gradient({"aten::xlogy.Tensor", {wide(), row_of(0.4, 2.0)}});
  expect_gradient({"aten::prelu", {wide(), row_of(0.1, 0.5)}});
  expect_gradient({"aten::lerp.Tensor", {wide(), row_of(-1, 1), positive()}});
  expect_gradient({"aten::addcmul", {wide(), row_of(-1, 1), positive(), 0.5}});
  expect_gradient({"aten::addcdiv", {wide(), row_of(-1, 1), positive(), 0.5}});
}

TEST(Gradient, OfReductionsAndNorms) {
  const Tensor x = sample(Dims{2, 3, 4}, -2.0, 2.0, 6);
  expect_gradient({"aten::sum", {x}});
  expect_gradient({"aten::mean", {x}});
  expect_gradient({"aten::sum.dim_IntList", {x, ints(Dims{0, 2}), true}});
  expect_gradient({"aten::mean.dim", {x, ints(Dims{1}), false}});
  expect_gradient({"aten::prod", {x}});
  expect_gradient({"aten::prod.dim_int", {x, 1}});
  expect_gradient({"aten::max", {x}});
  expect_gradient({"aten::amin", {x, ints(Dims{1})}});
  expect_gradient({"aten::max.dim", {x, 1}});
  expect_gradient({"aten::var", {x}});
  expect_gradient({"aten::std.dim", {x, ints(Dims{2}), false, false}});
  expect_gradient({"aten::norm.ScalarOpt_dim", {x, 2, ints(Dims{1})}});
  expect_gradient({"aten::norm.Scalar", {x, 3.5}});
  expect_gradient({"aten::linalg_vector_norm", {x, 1}});
  expect_gradient({"aten::cumsum", {x, 1}});
  expect_gradient({"aten::softmax.int", {x, 1}});
  expect_gradient({"aten::log_softmax.int", {x, 2}});
  expect_gradient({"aten::layer_norm", {x, ints(Dims{4}), sample(Dims{4}, 0.5, 1.5, 7), sample(Dims{4}, 0.5, 1.5, 8)}});
  expect_gradient({"aten::group_norm",
                   {sample(Dims{2, 4, 3}, -2, 2, 9), 2, sample(Dims{4}, 0.5, 1.5, 7), sample(Dims{4}, 0.5, 1.5, 8)}});
  const Tensor parameter = sample(Dims{3}, 0.5, 1.5, 10);
  expect_gradient(
      {"aten::batch_norm", {x, parameter, sample(Dims{3}, 0, 1, 11), Value(), Value(), true, 0.1, 1e-5, false}});
}

}  // namespace
}  // namespace tensord
