// Gradients of elementwise formulas in one pass over memory, compared with the same formulas operator by operator; and
// gradients of operators that PyTorch does not have. All others: tests/ops/op_gradients_test.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/autograd/engine.h"
#include "core/autograd/gradcheck.h"
#include "core/autograd/variable.h"
#include "core/base/parallel.h"
#include "core/ops/run.h"

namespace tensord::gradient_test {
namespace {

using ops::Value;

Tensor sample(const Dims& sizes, uint32_t seed, DType dtype = DType::kFloat64) {
  const Tensor out = Tensor::empty(sizes, DType::kFloat64);
  uint32_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < out.numel(); ++i) {
    state = state * 1664525u + 1013904223u;
    out.data<double>()[i] = 0.3 + 2.2 * ((state >> 8) / 16777216.0);
  }
  return out.to(dtype);
}

// Gradients of one call for its float arguments; with `recorded` each operator is recorded separately.
std::vector<Tensor> gradients_of(const std::string& name, const std::vector<Value>& arguments, bool recorded) {
  std::vector<Tensor> leaves;
  std::vector<Value> bound = ops::bind(ops::get_op(name), arguments);
  for (Value& value : bound) {
    if (!value.is_tensor()) continue;
    value = autograd::detach(value.to_tensor());
    autograd::set_requires_grad(value.to_tensor());
    leaves.push_back(value.to_tensor());
  }
  const Tensor result = ops::run(ops::get_op(name), bound).front().to_tensor();
  const Tensor incoming = sample(result.sizes(), 99, result.dtype());
  return autograd::grad(std::span(&result, 1), leaves, std::span(&incoming, 1), {.create_graph = recorded});
}

void expect_one_pass_equals_steps(const std::string& name, const std::vector<Value>& arguments) {
  const std::vector<Tensor> together = gradients_of(name, arguments, false),
                            steps = gradients_of(name, arguments, true);
  ASSERT_EQ(together.size(), steps.size());
  for (size_t i = 0; i < together.size(); ++i) {
    ASSERT_EQ(describe(together[i]), describe(steps[i])) << name;
    const Tensor a = together[i].to(DType::kFloat64).contiguous(), b = steps[i].to(DType::kFloat64).contiguous();
    for (int64_t k = 0; k < a.numel(); ++k) {
      const double got = a.data<double>()[k], wanted = b.data<double>()[k];
      ASSERT_NEAR(got, wanted, 1e-6 * std::abs(wanted)) << name << " " << describe(together[i]) << " element " << k;
    }
  }
}

Tensor transposed(const Tensor& x) { return ops::call_by_name("aten::transpose.int", x, 0, 1); }

// Every second column of twice as many.
Tensor strided(const Tensor& x) {
  const Tensor wide = ops::call_by_name("aten::repeat_interleave.self_int", x, 2, -1);
  return ops::call_by_name("aten::slice.Tensor", wide, -1, 0, INT64_MAX, 2);
}

TEST(GradientInOnePass, EqualsItsOperatorsOneByOne) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16}) {
    const Tensor x = sample(Dims{5, 700}, 1, dtype), y = sample(Dims{5, 700}, 2, dtype);
    for (const char* name : {"mul.Tensor", "div.Tensor", "pow.Tensor_Tensor", "maximum", "atan2", "hypot"}) {
      const std::string op = std::string("aten::") + name;
      expect_one_pass_equals_steps(op, {x, y});
      expect_one_pass_equals_steps(op, {x, sample(Dims{700}, 3, dtype)});
      expect_one_pass_equals_steps(op, {sample(Dims{5, 1}, 3, dtype), y});
      expect_one_pass_equals_steps(op, {x, sample(Dims{}, 3, dtype)});
      expect_one_pass_equals_steps(op, {transposed(x), transposed(y)});
      expect_one_pass_equals_steps(op, {strided(x), y});
    }
    for (const char* name : {"mish", "silu", "gelu", "hardswish", "tanh", "exp", "log", "asinh", "erf", "selu"}) {
      const std::string op = std::string("aten::") + name;
      expect_one_pass_equals_steps(op, {x});
      expect_one_pass_equals_steps(op, {transposed(x)});
      expect_one_pass_equals_steps(op, {sample(Dims{}, 4, dtype)});
      expect_one_pass_equals_steps(op, {sample(Dims{0, 3}, 4, dtype)});
    }
    expect_one_pass_equals_steps("aten::lerp.Tensor", {x, y, sample(Dims{5, 700}, 5, dtype)});
    expect_one_pass_equals_steps("aten::addcdiv", {x, y, sample(Dims{700}, 5, dtype), 0.5});
    expect_one_pass_equals_steps("aten::clamp.Tensor", {x, sample(Dims{700}, 5, dtype), Value()});
  }
}

// Operands of different dtypes: the gradient is converted to each.
TEST(GradientInOnePass, ConvertsToTheOperandsDtype) {
  expect_one_pass_equals_steps("aten::mul.Tensor", {sample(Dims{40}, 1, DType::kFloat32), sample(Dims{40}, 2)});
  expect_one_pass_equals_steps("aten::div.Tensor", {sample(Dims{40}, 1), sample(Dims{40}, 2, DType::kBFloat16)});
}

// The same formula with other constants is a different one.
TEST(GradientInOnePass, KeepsNumbersApart) {
  const Tensor x = sample(Dims{64}, 7, DType::kFloat32);
  for (const double slope : {0.1, 0.2, 0.1, -0.0, 0.0}) {
    expect_one_pass_equals_steps("aten::elu", {ops::call_by_name("aten::neg", x), slope, 1.5, 0.7});
  }
}

// More shapes than the cache holds, each twice, with other numbers of threads.
TEST(GradientInOnePass, ForgetsWhatWasNotUsedLately) {
  for (int round = 0; round < 2; ++round) {
    for (int64_t n = 1; n <= 300; ++n)
      expect_one_pass_equals_steps("aten::mish", {sample(Dims{n}, 8, DType::kFloat32)});
  }
  const int budget = thread_budget();
  for (const int threads : {1, 2}) {
    set_thread_budget(threads);
    expect_one_pass_equals_steps("aten::mish", {sample(Dims{200000}, 9, DType::kFloat32)});
  }
  set_thread_budget(budget);
}

void expect_gradcheck(const std::string& name, const std::vector<Value>& arguments) {
  SCOPED_TRACE(name);
  std::vector<Tensor> leaves;
  for (const Value& value : arguments) {
    if (!value.is_tensor()) continue;
    leaves.push_back(value.to_tensor());
    autograd::set_requires_grad(leaves.back());
  }
  const auto function = [&](const std::vector<Tensor>& inputs) -> std::vector<Tensor> {
    std::vector<Value> bound = arguments;
    size_t next = 0;
    for (Value& value : bound) {
      if (value.is_tensor()) value = inputs[next++];
    }
    return {ops::run(ops::get_op(name), bound).front().to_tensor()};
  };
  EXPECT_NO_THROW(autograd::gradcheck(function, leaves));
  EXPECT_NO_THROW(autograd::gradgradcheck(function, leaves));
}

Value ints(const Dims& dims) { return ops::make_int_list(dims); }

TEST(Gradient, OfOperatorsOfOurOwn) {
  // Overlapping elements in the view, unused elements, and an expanded source.
  expect_gradcheck("tensord::as_strided_gather",
                   {sample(Dims{3, 4}, 1), ints({4, 1}), 2, ints({2, 3}), ints({1, 1}), 3});
  expect_gradcheck("tensord::as_strided_gather", {sample(Dims{3, 4}, 1), ints({0, 1}), 0, ints({4}), ints({1}), 0});
  expect_gradcheck("tensord::as_strided_scatter_add",
                   {sample(Dims{2, 3}, 1), ints({3, 4}), ints({4, 1}), 2, ints({2, 3}), ints({1, 1}), 3});
  expect_gradcheck("tensord::_pad_circular_backward",
                   {sample(Dims{1, 2, 7}, 1), sample(Dims{1, 2, 4}, 2), ints({2, 1})});
}

// Eigenvectors that were not requested are an empty tensor, whose gradient does not affect the matrix.
TEST(Gradient, OfEigenvectorsThatAreNotThere) {
  const Tensor a = autograd::detach(sample({2, 2}, 5));
  autograd::set_requires_grad(a);
  const std::vector<Value> results =
      ops::run(ops::get_op("aten::_linalg_eigh"), ops::bind(ops::get_op("aten::_linalg_eigh"), {a, "L", false}));
  const Tensor vectors = results.at(1).to_tensor();
  ASSERT_EQ(vectors.numel(), 0);
  const Tensor total = ops::call_by_name("aten::sum", vectors, Value());
  EXPECT_FALSE(autograd::grad(std::vector{total}, std::vector{a}, {}, {}, true).at(0).defined());
}

TEST(Gradient, OfAsStridedSharesTheMemoryOfItsInput) {
  const auto windows = [](const std::vector<Tensor>& inputs) -> std::vector<Tensor> {
    return {ops::call_by_name("aten::as_strided", inputs[0], Dims{3, 4}, Dims{2, 1}, 0)};
  };
  const Tensor x = sample(Dims{2, 4}, 3);
  autograd::set_requires_grad(x);
  EXPECT_NO_THROW(autograd::gradcheck(windows, {x}));
  EXPECT_NO_THROW(autograd::gradgradcheck(windows, {x}));
}

TEST(Gradient, OfAsStridedRefusesGeometriesThatOverflow) {
  const Tensor g = sample(Dims{2}, 1);
  const int64_t huge = int64_t{1} << 62;
  EXPECT_THROW(ops::call_by_name("tensord::as_strided_scatter_add", g, Dims{2}, Dims{huge}, huge, Dims{2}, Dims{1}, 0),
               Error);
  EXPECT_THROW(ops::call_by_name("tensord::as_strided_scatter_add", g, Dims{2}, Dims{-1}, 0, Dims{2}, Dims{1}, 0),
               Error);
  EXPECT_THROW(ops::call_by_name("tensord::as_strided_scatter_add", g, Dims{2}, Dims{1}, 0, Dims{3}, Dims{1}, 0),
               Error);
}

}  // namespace
}  // namespace tensord::gradient_test
