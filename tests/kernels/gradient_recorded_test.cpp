// Gradients of operators that autograd records call by call, through the engine, compared with finite differences.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/base/parallel.h"
#include "core/ops/run.h"

namespace tensord::gradient_recorded_test {
namespace {

using ops::Value;

Tensor sample(const Dims& sizes, uint32_t seed) {
  Tensor out = Tensor::empty(sizes, DType::kFloat64);
  uint32_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < out.numel(); ++i) {
    state = state * 1664525u + 1013904223u;
    out.data<double>()[i] = 2.0 * ((state >> 8) / 16777216.0) - 1.0;
  }
  return out;
}

bool is_real(const Value& v) { return v.is_tensor() && v.to_tensor().dtype() == DType::kFloat64; }

// The floating-point tensors among the values and in their lists.
std::vector<Tensor> tensors_of(const std::vector<Value>& values) {
  std::vector<Tensor> out;
  for (const Value& v : values) {
    if (is_real(v)) out.push_back(v.to_tensor());
    if (!v.is_list()) continue;
    for (const Value& item : v.to_list()->items) {
      if (is_real(item)) out.push_back(item.to_tensor());
    }
  }
  return out;
}

// The sum of the results times weights.
Tensor loss(const ops::Op& op, const std::vector<Value>& arguments) {
  Tensor total;
  uint32_t seed = 77;
  for (const Tensor& result : tensors_of(ops::run(op, arguments))) {
    if (result.numel() == 0) continue;
    const Tensor sum =
        ops::call_by_name("aten::sum", ops::call_by_name("aten::mul.Tensor", result, sample(result.sizes(), seed++)));
    total = total ? ops::call_by_name("aten::add.Tensor", total, sum) : sum;
  }
  return total;
}

void expect_gradient(const std::string& name, const std::vector<Value>& positional) {
  SCOPED_TRACE(name);
  set_thread_budget(1);
  const ops::Op& op = ops::get_op(name);
  const std::vector<Value> arguments = ops::bind(op, positional);
  const std::vector<Tensor> inputs = tensors_of(arguments);
  for (const Tensor& input : inputs) autograd::set_requires_grad(input);
  const Tensor root = loss(op, arguments);
  const std::vector<Tensor> gradients = autograd::grad(std::vector<Tensor>{root}, inputs);
  const NoGradGuard guard;
  for (size_t n = 0; n < inputs.size(); ++n) {
    ASSERT_EQ(gradients[n].sizes(), inputs[n].sizes());
    const Tensor gradient = gradients[n].contiguous();
    constexpr double kStep = 1e-5;
    for (int64_t i = 0; i < inputs[n].numel(); ++i) {
      double& x = inputs[n].data<double>()[i];
      const double old = x;
      x = old + kStep;
      const double above = loss(op, arguments).item_double();
      x = old - kStep;
      const double below = loss(op, arguments).item_double();
      x = old;
      const double expected = (above - below) / (2 * kStep);
      ASSERT_NEAR(gradient.data<double>()[i], expected, 1e-7 * std::max(1.0, std::abs(expected)))
          << "tensor " << n << " element " << i;
    }
  }
  for (const Tensor& input : inputs) autograd::set_requires_grad(input, false);
}

struct Family {
  std::string name;
  int64_t gates;
};
const Family kFamilies[] = {{"aten::lstm", 4}, {"aten::gru", 3}, {"aten::rnn_tanh", 1}, {"aten::rnn_relu", 1}};

// Parameters of two layers and directions.
Value parameters(int64_t gates, int64_t inputs, int64_t units, int64_t projected, int64_t layers, int64_t directions) {
  std::vector<Tensor> all;
  const int64_t state = projected > 0 ? projected : units;
  uint32_t seed = 20;
  for (int64_t cell = 0; cell < layers * directions; ++cell) {
    all.push_back(sample({gates * units, cell < directions ? inputs : directions * state}, seed++));
    all.push_back(sample({gates * units, state}, seed++));
    all.push_back(sample({gates * units}, seed++));
    all.push_back(sample({gates * units}, seed++));
    if (projected > 0) all.push_back(sample({projected, units}, seed++));
  }
  return ops::make_tensor_list(all);
}

Value states(const std::string& name, const Dims& sizes, int64_t cell_units) {
  const Tensor h = sample(sizes, 3);
  if (name != "aten::lstm") return h;
  return ops::make_tensor_list({h, sample({sizes[0], sizes[1], cell_units}, 4)});
}

TEST(RecordedGradient, OfRecurrentLayers) {
  for (const Family& f : kFamilies) {
    expect_gradient(f.name + ".input", {sample({3, 2, 3}, 1), states(f.name, {4, 2, 2}, 2),
                                        parameters(f.gates, 3, 2, 0, 2, 2), true, 2, 0.0, true, true, false});
    expect_gradient(f.name + ".input", {sample({2, 3, 3}, 1), states(f.name, {1, 2, 2}, 2),
                                        parameters(f.gates, 3, 2, 0, 1, 1), true, 1, 0.0, false, false, true});
    Tensor batches = Tensor::empty(Dims{3}, DType::kInt64);
    for (int64_t i = 0; i < 3; ++i) batches.data<int64_t>()[i] = 3 - i;
    expect_gradient(f.name + ".data", {sample({6, 3}, 1), batches, states(f.name, {2, 3, 2}, 2),
                                       parameters(f.gates, 3, 2, 0, 1, 2), true, 1, 0.0, true, true});
  }
  expect_gradient("aten::lstm.input", {sample({3, 2, 3}, 1), states("aten::lstm", {2, 2, 1}, 2),
                                       parameters(4, 3, 2, 1, 2, 1), true, 2, 0.0, true, false, false});
}

// A call gives the same result with and without recording.
TEST(RecordedGradient, ValuesOfRecurrentLayersAreTheSame) {
  for (const Family& f : kFamilies) {
    const ops::Op& op = ops::get_op(f.name + ".input");
    const Tensor x = sample({4, 3, 5}, 1);
    const std::vector<Value> arguments{
        x, states(f.name, {4, 3, 6}, 6), parameters(f.gates, 5, 6, 0, 2, 2), true, 2, 0.0, true, true, false};
    const std::vector<Value> plain = ops::run(op, arguments);
    autograd::set_requires_grad(x);
    const std::vector<Value> recorded = ops::run(op, arguments);
    ASSERT_EQ(plain.size(), recorded.size());
    for (size_t r = 0; r < plain.size(); ++r) {
      const Tensor a = plain[r].to_tensor().contiguous(), b = recorded[r].to_tensor().contiguous();
      EXPECT_TRUE(autograd::requires_grad(recorded[r].to_tensor()));
      ASSERT_EQ(a.sizes(), b.sizes());
      for (int64_t i = 0; i < a.numel(); ++i) ASSERT_NEAR(a.data<double>()[i], b.data<double>()[i], 1e-12);
    }
  }
}

// Dropout between layers differs from call to call, and gradients use the same mask.
TEST(RecordedGradient, OfDropoutBetweenLayers) {
  const ops::Op& op = ops::get_op("aten::gru.input");
  const Tensor x = sample({4, 3, 5}, 1);
  autograd::set_requires_grad(x);
  const std::vector<Value> arguments{
      x, states("aten::gru", {2, 3, 6}, 6), parameters(3, 5, 6, 0, 2, 1), true, 2, 0.5, true, false, false};
  const auto run = [&] {
    const Tensor out = ops::run(op, arguments)[0].to_tensor();
    return autograd::grad(std::vector<Tensor>{ops::call_by_name("aten::sum", out)}, std::vector<Tensor>{x})[0];
  };
  const Tensor a = run(), b = run();
  double difference = 0;
  for (int64_t i = 0; i < a.numel(); ++i) difference += std::abs(a.data<double>()[i] - b.data<double>()[i]);
  EXPECT_GT(difference, 1e-3);
}

TEST(RecordedGradient, OfCells) {
  for (const Family& f : kFamilies) {
    const Tensor x = sample({2, 3}, 1), h = sample({2, 4}, 2), b = sample({f.gates * 4}, 5),
                 c = sample({f.gates * 4}, 6);
    const Value state = f.gates == 4 ? ops::make_tensor_list({h, sample({2, 4}, 7)}) : Value(h);
    const Tensor w = sample({f.gates * 4, 3}, 3), u = sample({f.gates * 4, 4}, 4);
    expect_gradient(f.name + "_cell", {x, state, w, u, b, c});
    expect_gradient(f.name + "_cell", {x, state, w, u});
  }
}

TEST(RecordedGradient, OfEinsum) {
  const Tensor a = sample({2, 3}, 1), b = sample({3, 4}, 2), c = sample({3, 3}, 3), d = sample({2, 4, 3}, 4);
  const auto einsum = [](const char* equation, const std::vector<Tensor>& tensors) {
    expect_gradient("aten::einsum", {equation, ops::make_tensor_list(tensors), Value()});
  };
  einsum("ij,jk->ik", {a, b});
  einsum("ij,jk", {a, b});
  einsum("ii->i", {c});
  einsum("ii", {c});
  einsum("bij,jk->bik", {d, b});
  einsum("...j,jk->...k", {d, b});
  einsum("ij,jk,ii->k", {sample({3, 3}, 5), b, c});
  einsum("ij,ij->", {a, sample({1, 3}, 6)});
  einsum("i,j->ij", {sample({2}, 7), sample({3}, 8)});
}

TEST(RecordedGradient, OfAttention) {
  const Tensor q = sample({2, 2, 3, 4}, 1), k = sample({2, 2, 5, 4}, 2), v = sample({2, 2, 5, 4}, 3);
  const Tensor seen = ops::call_by_name("aten::gt.Scalar", sample({3, 5}, 9), ops::Scalar(-0.5));
  expect_gradient("aten::scaled_dot_product_attention", {q, k, v});
  expect_gradient("aten::scaled_dot_product_attention", {q, k, v, sample({3, 5}, 4)});
  expect_gradient("aten::scaled_dot_product_attention", {q, k, v, seen});
  expect_gradient("aten::scaled_dot_product_attention", {q, k, v, Value(), 0.0, true, 0.3});
  expect_gradient("aten::_scaled_dot_product_attention", {q, k, v, Value(), 0.0, true, true});
  const Tensor x = sample({2, 3, 4}, 1);
  for (const bool needs_weights : {false, true}) {
    expect_gradient("aten::_native_multi_head_attention", {x, x, x, 4, 2, sample({12, 4}, 2), sample({12}, 3),
                                                           sample({4, 4}, 4), sample({4}, 5), Value(), needs_weights});
  }
}

}  // namespace
}  // namespace tensord::gradient_recorded_test
